#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "files/file.h"
#include "files/output/copy_file.h"
#include "files/output/special_file.h"
#include "files/output/staged_directory.h"
#include "files/output/write_file.h"
#include "support/expect_error.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// Limits the size of files while it exists, which for writers is like a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_ino;
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("file: a mapping shows the file and outlives it") {
  const test::TempDir temp;
  const fs::path path = temp.write("a", "contents");
  std::shared_ptr<const void> keep_alive;
  std::span<const std::byte> bytes;
  {
    const MappedFile file = MappedFile::open(path);
    CHECK(text_of(file) == "contents");
    CHECK(file.path() == path);
    keep_alive = file.keep_alive();
    bytes = file.bytes();
  }
  fs::remove(path);
  CHECK(static_cast<char>(bytes[7]) == 's');
}

TEST_CASE("file: an empty file maps to nothing") {
  const test::TempDir temp;
  CHECK(MappedFile::open(temp.write("empty", "")).bytes().empty());
}

TEST_CASE("file: every reader says what a path is that is no file") {
  const test::TempDir temp;
  const fs::path folder = temp.path();
  const fs::path missing = temp / "missing";
  const fs::path below_file = temp.write("a", "x") / "b";
  const auto each = [](const fs::path& path, const std::string& expected) {
    CHECK(test::error_of([&] { MappedFile::open(path); }) == quote(path.string()) + expected);
    CHECK(test::error_of([&] { read_text(path); }) == quote(path.string()) + expected);
    CHECK(test::error_of([&] { read_range(path, 0, 1); }) == quote(path.string()) + expected);
    CHECK(test::error_of([&] { regular_file_size(path); }) == quote(path.string()) + expected);
  };
  each(missing, ": no such file");
  each(below_file, ": no such file");
  each(folder, ": is a folder, expected a file");
}

TEST_CASE("file: a pipe that nobody writes to is refused, not waited for") {
  const test::TempDir temp;
  const fs::path pipe = temp / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string expected = quote(pipe.string()) + ": is a named pipe, expected a regular file";
  CHECK(test::error_of([&] { MappedFile::open(pipe); }) == expected);
  CHECK(test::error_of([&] { read_range(pipe, 0, 1); }) == expected);
  CHECK(test::error_of([&] { link_or_copy(pipe, temp / "to", LinkMode::copy); }) == expected);
}

TEST_CASE("file: text is read whole, up to a limit") {
  const test::TempDir temp;
  const std::string text(100'000, 'x');
  const fs::path path = temp.write("a", text);
  CHECK(read_text(path) == text);
  CHECK(read_text(path, 100'000) == text);
  CHECK(test::error_of([&] { read_text(path, 99'999); }) ==
        quote(path.string()) + ": longer than the 97.7 KiB that are accepted here");
}

TEST_CASE("file: a range is read exactly, and never past the end") {
  const test::TempDir temp;
  const fs::path path = temp.write("a", "0123456789");
  CHECK(read_range(path, 0, 10) == "0123456789");
  CHECK(read_range(path, 3, 4) == "3456");
  CHECK(read_range(path, 10, 0) == "");
  CHECK(test::error_of([&] { read_range(path, 8, 3); }) ==
        quote(path.string()) + ": ends at byte 10, expected at least 3 more from byte 8");
  // The size is refused before memory is allocated.
  CHECK(test::error_of([&] { read_range(path, 1, UINT64_MAX); }) ==
        quote(path.string()) +
            ": ends at byte 10, expected at least 18446744073709551615 more from byte 1");
}

TEST_CASE("file: an atomic write makes, refuses and replaces") {
  const test::TempDir temp;
  const fs::path path = temp / "out.json";
  write_file_atomically(path, "one", false);
  CHECK(test::read_file(path) == "one");
  CHECK(test::error_of([&] { write_file_atomically(path, "two", false); }) ==
        quote(path.string()) + ": already exists");
  CHECK(test::read_file(path) == "one");
  write_file_atomically(path, "three", true);
  CHECK(test::read_file(path) == "three");
  CHECK(names_in(temp.path()) == Names{"out.json"});
}

TEST_CASE("file: an atomic write that fails leaves the old file and nothing else") {
  const test::TempDir temp;
  const fs::path path = temp.write("out.json", "old");
  {
    const FileSizeLimit limit(1000);
    const std::string message = test::error_of(
        [&] { write_file_atomically(path, std::string(5000, 'x'), true); }, ErrorKind::resource);
    CHECK(message.starts_with(quote(path.string()).substr(0, path.string().size() + 1)));
    CHECK(message.ends_with(": cannot write: File too large"));
  }
  CHECK(test::read_file(path) == "old");
  CHECK(names_in(temp.path()) == Names{"out.json"});
}

TEST_CASE("file: an atomic write needs a folder and does not replace one") {
  const test::TempDir temp;
  fs::create_directory(temp / "folder");
  CHECK(test::error_of([&] { write_file_atomically(temp / "folder", "x", true); }) ==
        quote((temp / "folder").string()) + ": is a folder, expected a file");
  CHECK(test::error_of([&] { write_file_atomically(temp / "no/out", "x", false); }) ==
        quote((temp / "no").string()) + ": no such folder");
  CHECK(names_in(temp.path()) == Names{"folder"});
}

// Root could replace a device by a file, and so remove /dev/null for the whole machine.
TEST_CASE("file: a pipe is written to, never replaced, and needs no leave to") {
  const test::TempDir temp;
  const fs::path pipe = temp / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("pipe", temp / "link");
  for (const fs::path& path : {pipe, temp / "link"}) {
    for (const bool overwrite : {false, true}) {
      std::string read;
      std::thread reader([&] { read = read_text(pipe); });
      check_output_file(path, overwrite);
      write_file_atomically(path, "scales", overwrite);
      reader.join();
      CHECK(read == "scales");
    }
  }
  CHECK(fs::is_fifo(fs::symlink_status(pipe)));
  CHECK(fs::is_symlink(temp / "link"));
  CHECK(names_in(temp.path()) == std::vector<std::string>{"link", "pipe"});
}

TEST_CASE("file: the name of a descriptor stands for it, whatever is behind") {
  const test::TempDir temp;
  temp.write("log", "before ");
  const int log = ::open((temp / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(log >= 0);
  fs::create_symlink("/dev/fd/" + std::to_string(log), temp / "stdout");
  for (const fs::path& path : {temp / "stdout", fs::path("/dev/fd/" + std::to_string(log)),
                               fs::path("/proc/self/fd/" + std::to_string(log))}) {
    write_file_atomically(path, "x", true);
    CHECK(::fcntl(log, F_GETFD) != -1);  // the descriptor is still open
  }
  ::close(log);
  CHECK(test::read_file(temp / "log") == "before xxx");
  CHECK(fs::is_symlink(temp / "stdout"));
  CHECK(test::error_of([&] { write_file_atomically("/dev/fd/987", "x", true); },
                       ErrorKind::resource) == "'/dev/fd/987': cannot open: Bad file descriptor");
}

TEST_CASE("file: a disk is not written to") {
  const fs::directory_iterator devices("/dev"), end;
  const auto disk =
      std::find_if(devices, end, [](const auto& entry) { return entry.is_block_file(); });
  if (disk == end) {
    test::skip("there is no disk under /dev");
    return;
  }
  const std::string name = disk->path().string();
  CHECK(test::error_of([&] { check_output_file(name, true); }) ==
        quote(name) + ": is a disk, expected a file");
}

TEST_CASE("file: a link to a file, and one that leads nowhere, are no special files") {
  const test::TempDir temp;
  temp.write("file", "old");
  fs::create_symlink("file", temp / "link");
  fs::create_symlink("link2", temp / "link2");
  for (const char* name : {"file", "link", "link2", "none"}) {
    CAPTURE(name);
    CHECK_FALSE(is_special_file(temp / name));
  }
  CHECK(is_special_file("/dev/null"));
  CHECK(is_special_file("/dev/stdout"));
}

TEST_CASE("file: a new file never overwrites") {
  const test::TempDir temp;
  write_new_file(temp / "a", "one");
  CHECK(test::error_of([&] { write_new_file(temp / "a", "two"); }, ErrorKind::resource) ==
        quote((temp / "a").string()) + ": cannot create: File exists");
  CHECK(test::read_file(temp / "a") == "one");
}

TEST_CASE("file: a staged folder appears whole when it is published") {
  const test::TempDir temp;
  {
    StagedDirectory staged(temp / "out/", false);  // shells complete folders with a slash
    write_new_file(staged.path() / "a", "1");
    CHECK_FALSE(fs::exists(temp / "out"));
    staged.publish();
  }
  CHECK(names_in(temp.path()) == Names{"out"});
  CHECK(test::read_file(temp / "out/a") == "1");
}

TEST_CASE("file: a staged folder that is given up leaves nothing") {
  const test::TempDir temp;
  {
    const StagedDirectory staged(temp / "out", false);
    write_new_file(staged.path() / "a", "1");
  }
  CHECK(names_in(temp.path()).empty());
}

TEST_CASE("file: a staged folder refuses what exists") {
  const test::TempDir temp;
  temp.write("out/old", "1");
  temp.write("file", "2");
  CHECK(test::error_of([&] { StagedDirectory(temp / "out", false); }) ==
        quote((temp / "out").string()) + ": already exists");
  CHECK(test::error_of([&] { StagedDirectory(temp / "file", true); }) ==
        quote((temp / "file").string()) + ": is a file, expected a folder");
  CHECK(test::error_of([&] { StagedDirectory(temp / "no/out", false); }) ==
        quote((temp / "no").string()) + ": no such folder");
  CHECK(names_in(temp.path()) == Names{"file", "out"});
}

TEST_CASE("file: a staged folder can get another name, but no taken one") {
  const test::TempDir temp;
  {
    StagedDirectory staged(temp / "out", false);
    write_new_file(staged.path() / "a", "1");
    staged.publish_as(temp / "other");
  }
  StagedDirectory second(temp / "out", false);
  CHECK(test::error_of([&] { second.publish_as(temp / "other"); }) ==
        quote((temp / "other").string()) + ": already exists");
  CHECK(names_in(temp / "other") == Names{"a", "fp8kv-files.txt"});
}

TEST_CASE("file: a target that appeared meanwhile is kept") {
  const test::TempDir temp;
  {
    StagedDirectory staged(temp / "out", false);
    temp.write("out/theirs", "1");
    CHECK(test::error_of([&] { staged.publish(); }) ==
          quote((temp / "out").string()) + ": already exists");
  }
  CHECK(names_in(temp.path()) == Names{"out"});
  CHECK(names_in(temp / "out") == Names{"theirs"});
}

TEST_CASE("file: a replaced folder changes in one step and the old one goes") {
  const test::TempDir temp;
  const auto publish = [&](const char* name) {
    StagedDirectory staged(temp / "out", true);
    write_new_file(staged.path() / name, "1");
    staged.publish();
  };
  publish("old");
  {
    StagedDirectory staged(temp / "out", true);
    write_new_file(staged.path() / "new", "2");
    CHECK(names_in(temp / "out") == Names{"fp8kv-files.txt", "old"});
    staged.publish();
    CHECK(names_in(temp / "out") == Names{"fp8kv-files.txt", "new"});
  }
  CHECK(names_in(temp.path()) == Names{"out"});
}

TEST_CASE("file: each way of linking gives the same contents") {
  const test::TempDir temp;
  const std::string text(200'000, 'y');
  const fs::path from = temp.write("from", text);
  CHECK(link_or_copy(from, temp / "hard", LinkMode::hard) == LinkResult::hard_linked);
  CHECK(inode_of(temp / "hard") == inode_of(from));
  CHECK(link_or_copy(from, temp / "copy", LinkMode::copy) == LinkResult::copied);
  CHECK(inode_of(temp / "copy") != inode_of(from));
  // Hard links always work within a folder, so `automatic` never copies here.
  CHECK(link_or_copy(from, temp / "auto", LinkMode::automatic) != LinkResult::copied);
  for (const char* name : {"hard", "copy", "auto"}) CHECK(test::read_file(temp / name) == text);
}

TEST_CASE("file: a reflink is made or refused, never replaced by something else") {
  const test::TempDir temp;
  const fs::path from = temp.write("from", "text");
  try {
    const LinkResult result = link_or_copy(from, temp / "to", LinkMode::reflink);
    CHECK(result == LinkResult::reflinked);
    CHECK(inode_of(temp / "to") != inode_of(from));
  } catch (const Error& error) {
    CHECK(std::string(error.what())
              .starts_with(quote(from.string()) + ": cannot be reflinked into the output: "));
    CHECK(error.help() == "the link mode 'auto' copies where links are impossible");
    CHECK(names_in(temp.path()) == Names{"from"});
  }
}

TEST_CASE("file: a symbolic link stands for the file it leads to") {
  const test::TempDir temp;
  const fs::path blob = temp.write("blobs/1", "weights");
  fs::create_directory(temp / "snapshot");
  fs::create_symlink("../blobs/1", temp / "snapshot/model");
  for (const LinkMode mode : {LinkMode::automatic, LinkMode::hard, LinkMode::copy}) {
    const fs::path to = temp / cat("to", static_cast<int>(mode));
    link_or_copy(temp / "snapshot/model", to, mode);
    CHECK(fs::symlink_status(to).type() == fs::file_type::regular);
    CHECK(test::read_file(to) == "weights");
  }
  CHECK(inode_of(temp / cat("to", static_cast<int>(LinkMode::hard))) == inode_of(blob));
}

TEST_CASE("file: linking never overwrites and takes files only") {
  const test::TempDir temp;
  const fs::path from = temp.write("from", "new");
  const fs::path to = temp.write("to", "old");
  for (const LinkMode mode : {LinkMode::automatic, LinkMode::hard, LinkMode::copy}) {
    const std::string message =
        test::error_of([&] { link_or_copy(from, to, mode); }, ErrorKind::resource);
    CHECK(message.starts_with(quote(to.string()) + ": cannot "));
    CHECK(message.ends_with(": File exists"));
    CHECK(test::error_of([&] { link_or_copy(temp.path(), temp / "x", mode); }) ==
          quote(temp.path().string()) + ": is a folder, expected a file");
  }
  CHECK(test::read_file(to) == "old");
}

TEST_CASE("file: a copy that fails part-way leaves nothing behind") {
  const test::TempDir temp;
  const fs::path from = temp.write("from", std::string(5000, 'z'));
  {
    const FileSizeLimit limit(1000);
    CHECK(test::error_of([&] { link_or_copy(from, temp / "to", LinkMode::copy); },
                         ErrorKind::resource) ==
          quote((temp / "to").string()) + ": cannot write: File too large");
  }
  CHECK(names_in(temp.path()) == Names{"from"});
}

}  // namespace fp8kv
