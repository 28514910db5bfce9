#include <algorithm>
#include <filesystem>
#include <string>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "files/file.h"
#include "files/output/atomic_file.h"
#include "files/output/temporary.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("temporary: has this process's number and goes unless it is kept") {
  const test::TempDir temp;
  {
    const Temporary file = Temporary::file(temp / "a");
    const Temporary folder = Temporary::folder(temp / "b/");
    CHECK(names_in(temp.path()) ==
          Names{cat("a.fp8kv-tmp-", getpid()), cat("b.fp8kv-tmp-", getpid())});
  }
  CHECK(names_in(temp.path()).empty());
  { Temporary::file(temp / "a").keep(); }
  CHECK(names_in(temp.path()) == Names{cat("a.fp8kv-tmp-", getpid())});
}

TEST_CASE("temporary: a name that is taken is left to whoever has it") {
  const test::TempDir temp;
  const std::string taken =
      cat("a.fp8kv-tmp-", getpid());  // the same process id on another machine
  temp.write(taken, "theirs");
  fs::create_directory(temp / cat("b.fp8kv-tmp-", getpid()));
  const Temporary file = Temporary::file(temp / "a");
  const Temporary folder = Temporary::folder(temp / "b");
  CHECK(file.path() == temp / (taken + ".1"));
  CHECK(folder.path() == temp / cat("b.fp8kv-tmp-", getpid(), ".1"));
  CHECK(test::read_file(temp / taken) == "theirs");
}

TEST_CASE("temporary: leftovers are listed by name, and nothing of them is removed") {
  const test::TempDir temp;
  temp.write("out.fp8kv-tmp-0", "left");
  temp.write("out.fp8kv-tmp-0.3/sub/file", "left");
  temp.write(cat("out.fp8kv-tmp-", getpid()), "left by a process of this number before");
  fs::create_symlink("nowhere", temp / "out.fp8kv-tmp-5");
  const std::vector<Leftover> left = find_leftovers(temp / "out/");
  REQUIRE(left.size() == 4);
  CHECK(left[0].path == temp / "out.fp8kv-tmp-0");
  CHECK(left[1].path == temp / "out.fp8kv-tmp-0.3");
  for (const Leftover& each : left) CHECK_FALSE(each.in_use);
  CHECK(names_in(temp.path()).size() == 4);
  CHECK(test::read_file(temp / "out.fp8kv-tmp-0.3/sub/file") == "left");
}

TEST_CASE("temporary: one that is being written is in use, whatever its number") {
  const test::TempDir temp;
  const Temporary file = Temporary::file(temp / "out");
  const Temporary folder = Temporary::folder(temp / "out");
  // A process in another container may have an id that no process here has.
  fs::rename(file.path(), temp / "out.fp8kv-tmp-999999999");
  const std::vector<Leftover> left = find_leftovers(temp / "out");
  REQUIRE(left.size() == 2);
  CHECK(left[0].in_use);
  CHECK(left[1].in_use);
}

TEST_CASE("temporary: names that only look alike are not listed") {
  const test::TempDir temp;
  for (const char* name :
       {"out", "out.fp8kv-tmp", "out.fp8kv-tmp-", "out.fp8kv-tmp-1x", "out.fp8kv-tmp-1.",
        "out.fp8kv-tmp-1.x", "out2.fp8kv-tmp-1", "xout.fp8kv-tmp-1", "out.fp8kv-tmp-1.2.3",
        "out.json.fp8kv-tmp-1", "out.tmp-1"}) {
    temp.write(name, "mine");
  }
  CHECK(find_leftovers(temp / "out").empty());
}

TEST_CASE("temporary: a path that another file has taken is not removed") {
  const test::TempDir temp;
  fs::path path;
  {
    const Temporary file = Temporary::file(temp / "a");
    path = file.path();
    fs::rename(path, temp / "moved");
    temp.write(path.filename().string(), "the user's");
  }
  CHECK(test::read_file(path) == "the user's");
}

TEST_CASE("temporary: a second writer of one state is refused, and the first goes on") {
  const test::TempDir temp;
  AtomicFile first(temp / "s");
  first.write("one");
  CHECK(test::error_of([&] { AtomicFile(temp / "s"); }) ==
        quote((temp / "s").string()) + ": is being written by another process");
  first.commit();
  CHECK(names_in(temp.path()) == Names{"s"});
  CHECK(test::read_file(temp / "s") == "one");
}

TEST_CASE("temporary: a new state takes another name than what a killed run left") {
  const test::TempDir temp;
  temp.write("model", "weights");
  fs::create_hard_link(temp / "model", temp / "s.fp8kv-tmp-3");
  fs::create_symlink("model", temp / cat("s.fp8kv-tmp-", getpid()));
  AtomicFile file(temp / "s");
  file.write("two");
  file.commit();
  CHECK(test::read_file(temp / "model") == "weights");
  CHECK(test::read_file(temp / "s") == "two");
}

}  // namespace
}  // namespace fp8kv
