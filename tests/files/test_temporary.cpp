#include <algorithm>
#include <filesystem>
#include <string>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "files/temporary.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using State = Leftover::State;

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
    CHECK(names_in(temp.path()) == Names{cat("a.tmp-", getpid()), cat("b.tmp-", getpid())});
  }
  CHECK(names_in(temp.path()).empty());
  { Temporary::file(temp / "a").keep(); }
  CHECK(names_in(temp.path()) == Names{cat("a.tmp-", getpid())});
}

TEST_CASE("temporary: a name that is taken is left to whoever has it") {
  const test::TempDir temp;
  const std::string taken = cat("a.tmp-", getpid());  // of a process of the same number elsewhere
  temp.write(taken, "theirs");
  fs::create_directory(temp / cat("b.tmp-", getpid()));
  const Temporary file = Temporary::file(temp / "a");
  const Temporary folder = Temporary::folder(temp / "b");
  CHECK(file.path() == temp / (taken + ".1"));
  CHECK(folder.path() == temp / cat("b.tmp-", getpid(), ".1"));
  CHECK(test::read_file(temp / taken) == "theirs");
}

TEST_CASE("temporary: what nobody writes any more is swept, files and folders") {
  const test::TempDir temp;
  temp.write("out.tmp-0", "left");
  temp.write("out.tmp-0.3/sub/file", "left");
  temp.write(cat("out.tmp-", getpid()), "left by a process of this number before");
  const std::vector<Leftover> left = sweep_temporaries(temp / "out/");
  REQUIRE(left.size() == 3);
  CHECK(left[0].path == temp / "out.tmp-0");
  CHECK(std::all_of(left.begin(), left.end(),
                    [](const Leftover& each) { return each.state == State::removed; }));
  CHECK(names_in(temp.path()).empty());
}

TEST_CASE("temporary: what is being written is named and kept, whatever its number") {
  const test::TempDir temp;
  const Temporary file = Temporary::file(temp / "out");
  const Temporary folder = Temporary::folder(temp / "out");
  // As a process of another container, whose number no process has here.
  fs::rename(file.path(), temp / "out.tmp-999999999");
  const std::vector<Leftover> left = sweep_temporaries(temp / "out");
  REQUIRE(left.size() == 2);
  CHECK(left[0].state == State::in_use);
  CHECK(left[1].state == State::in_use);
  CHECK(names_in(temp.path()).size() == 2);
}

TEST_CASE("temporary: names that only look alike are nobody's to remove") {
  const test::TempDir temp;
  const Names names = {"out",           "out.tmp",       "out.tmp-",   "out.tmp-1x",
                       "out.tmp-1.",    "out.tmp-1.x",   "out2.tmp-1", "xout.tmp-1",
                       "out.tmp-1.2.3", "out.json.tmp-1"};
  for (const std::string& name : names) temp.write(name, "mine");
  fs::create_symlink("out", temp / "out.tmp-5");
  const std::vector<Leftover> left = sweep_temporaries(temp / "out");
  REQUIRE(left.size() == 1);
  CHECK(left[0].path == temp / "out.tmp-5");
  CHECK(left[0].state == State::unsure);
  CHECK(names_in(temp.path()).size() == names.size() + 1);
}

TEST_CASE("temporary: a folder that is being replaced is not swept before it is removed") {
  const test::TempDir temp;
  temp.write("out/old", "1");
  StagedDirectory staged(temp / "out", true);
  staged.publish();
  CHECK(sweep_temporaries(temp / "out").empty());
  CHECK(names_in(temp.path()) == Names{"out"});
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

TEST_CASE(
    "temporary: a state's temporary that a killed run left is replaced, a link is not followed") {
  const test::TempDir temp;
  temp.write("model", "weights");
  fs::create_hard_link(temp / "model", temp / "s.tmp-3");
  fs::create_symlink("model", temp / cat("s.tmp-", getpid()));
  AtomicFile file(temp / "s");
  file.write("two");
  file.commit();
  CHECK(test::read_file(temp / "model") == "weights");
  CHECK(test::read_file(temp / "s") == "two");
}

}  // namespace
}  // namespace fp8kv
