// Files that change while they are read.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "files/file.h"
#include "support/expect_error.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

// A file of four pages, mapped into memory.
struct Mapped {
  std::byte at(size_t page) const { return file.bytes()[page * kPage + 7]; }
  std::string error() const {
    const std::string error = test::error_of([&] { file.check_unchanged(); });
    const std::string start = quote(path.string()) + ": changed while it was read: ";
    CHECK(error.starts_with(start));
    return error.substr(std::min(start.size(), error.size()));
  }

  test::TempDir folder;
  fs::path path = folder.write("f", std::string(4 * kPage, 'x'));
  MappedFile file = MappedFile::open(path);
};

void set_times(const fs::path& path, const struct stat& to) {
  const timespec times[2] = {to.st_atim, to.st_mtim};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("mapped file: one that is left alone is unchanged") {
  const Mapped mapped;
  CHECK(mapped.at(3) == std::byte{'x'});
  mapped.file.check_unchanged();
}

TEST_CASE("mapped file: what was cut off reads as zeros, and is an error at the end") {
  const Mapped mapped;
  fs::resize_file(mapped.path, kPage);
  CHECK(mapped.at(0) == std::byte{'x'});
  CHECK(mapped.at(2) == std::byte{0});
  CHECK(mapped.at(3) == std::byte{0});
  CHECK(mapped.error() == cat("had ", grouped(4 * kPage), " bytes, has ", grouped(kPage)));
}

TEST_CASE("mapped file: a fault counts though the file is as it was") {
  const Mapped mapped;
  const Mapped other;
  struct stat before {};
  REQUIRE(stat(mapped.path.c_str(), &before) == 0);
  fs::resize_file(mapped.path, kPage);
  CHECK(mapped.at(2) == std::byte{0});
  fs::resize_file(mapped.path, 4 * kPage);
  set_times(mapped.path, before);
  CHECK(mapped.error() == "a part of it could not be read");
  other.file.check_unchanged();
}

TEST_CASE("mapped file: many threads may meet the same fault") {
  const Mapped mapped;
  fs::resize_file(mapped.path, 0);
  std::vector<std::thread> threads;
  std::atomic<int> others{0};
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { others += mapped.at(i % 4) == std::byte{0} ? 0 : 1; });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(others == 0);
  CHECK(mapped.error().starts_with("had "));
}

TEST_CASE("mapped file: a mapping that is gone leaves its guard to others") {
  const Mapped mapped;
  for (int i = 0; i < 5000; ++i) MappedFile::open(mapped.path);  // more than there are guards
  const MappedFile again = MappedFile::open(mapped.path);
  fs::resize_file(mapped.path, 0);
  CHECK(again.bytes()[kPage] == std::byte{0});
}

TEST_CASE("mapped file: SIGBUS for other memory still ends the program") {
  if (test::kSanitized) return;  // AddressSanitizer reports it itself
  const Mapped mapped;           // installs the handler
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int file = open(mapped.path.c_str(), O_RDWR);
    const auto* bytes =
        static_cast<const volatile char*>(mmap(nullptr, 4 * kPage, PROT_READ, MAP_SHARED, file, 0));
    if (ftruncate(file, 0) != 0) _exit(2);
    _exit(bytes[kPage] == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
}

TEST_CASE("mapped file: writing, replacing and removing it are told apart") {
  {
    const Mapped mapped;
    struct stat later {};
    REQUIRE(stat(mapped.path.c_str(), &later) == 0);
    later.st_mtim.tv_nsec ^= 1;  // the smallest change that a write can make
    set_times(mapped.path, later);
    CHECK(mapped.error() == "it was written to");
  }
  {
    const Mapped mapped;
    fs::rename(mapped.folder.write("g", std::string(4 * kPage, 'x')), mapped.path);
    CHECK(mapped.error() == "another file took its name");
  }
  {
    const Mapped mapped;
    fs::remove(mapped.path);
    CHECK(mapped.error() == "it is no longer there");
    CHECK(test::help_of([&] { mapped.file.check_unchanged(); }) ==
          "run the same command again once nothing writes to that file");
  }
}

TEST_CASE("input file: one that ends too early changed while it was read") {
  const test::TempDir folder;
  const fs::path path = folder.write("f", std::string(100, 'x'));
  const InputFile file(path);
  fs::resize_file(path, 40);
  CHECK(test::error_of([&] { file.read(30, 50); }) ==
        cat(quote(path.string()), ": changed while it was read: ends at byte 40"));
}

}  // namespace fp8kv
