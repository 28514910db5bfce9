#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/text.h"
#include "files/trusted_file.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

struct Module {
  Module() : file(temp.write("lib/fp8kv_cuda.so", "code")), folder(temp / "lib") {
    fs::permissions(folder, fs::perms(0755));
    fs::permissions(file, fs::perms(0644));
  }

  test::TempDir temp;
  fs::path file;
  fs::path folder;
};

TEST_CASE("trusted file: one of the user, in folders of the user or of root") {
  const Module at;
  CHECK(why_not_trusted(at.file) == "");
  fs::create_symlink(at.file, at.temp / "link.so");
  CHECK(why_not_trusted(at.temp / "link.so") == "");
  CHECK(why_not_trusted(at.temp / "none.so") ==
        cat(quote((at.temp / "none.so").string()), " cannot be found"));
}

TEST_CASE("trusted file: what others may write is not") {
  const Module at;
  const auto changed = [](const fs::path& path) {
    return cat(quote(path.string()), " can be changed by other users");
  };
  fs::permissions(at.file, fs::perms(0646));
  CHECK(why_not_trusted(at.file) == changed(at.file));
  fs::permissions(at.file, fs::perms(0644));
  fs::permissions(at.folder, fs::perms(0777));
  CHECK(why_not_trusted(at.file) == changed(at.folder));
  fs::permissions(at.folder, fs::perms(01777));  // sticky, like /tmp
  CHECK(why_not_trusted(at.file) == "");
}

TEST_CASE("trusted file: one of another user, and one that a shared group may write, are not") {
  if (::geteuid() != 0) {
    test::skip("only root can give a file to another user");
    return;
  }
  const Module at;
  const auto give = [&](const fs::path& path, uid_t user, gid_t group) {
    REQUIRE(::chown(path.c_str(), user, group) == 0);
  };
  give(at.file, 12345, 0);
  CHECK(why_not_trusted(at.file) == cat(quote(at.file.string()),
                                        " belongs to user 12345, who is neither root, nor you, nor "
                                        "the owner of this program"));
  give(at.file, 0, 0);
  give(at.folder, 12345, 12345);
  CHECK(why_not_trusted(at.file).find("belongs to user 12345") != std::string::npos);
  give(at.folder, 0, 54321);
  CHECK(why_not_trusted(at.file) == "");
  fs::permissions(at.folder, fs::perms(0775));
  CHECK(why_not_trusted(at.file).ends_with("can be changed by other users"));
  give(at.folder, 0, 0);  // root's own group
  CHECK(why_not_trusted(at.file) == "");
}

}  // namespace
}  // namespace fp8kv
