// Every file operation of inject and quantize fails in turn, with each error and with a kill.
// No file may be lost.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <sys/stat.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr int kKill = 0;

struct FileState {
  std::string bytes;
  mode_t mode = 0;
  timespec modified{};
  timespec changed{};  // ctime of the inode, which a new link changes too
  nlink_t links = 0;
  ino_t inode = 0;
};

using Tree = std::map<std::string, FileState>;

Tree tree_of(const fs::path& path) {
  Tree tree;
  if (!fs::exists(path)) return tree;
  const auto add = [&](const std::string& name, const fs::path& at) {
    struct stat status {};
    REQUIRE(lstat(at.c_str(), &status) == 0);
    tree[name] = {S_ISREG(status.st_mode) ? test::read_file(at) : "",
                  status.st_mode,
                  status.st_mtim,
                  status.st_ctim,
                  status.st_nlink,
                  status.st_ino};
  };
  add("", path);
  if (!fs::is_directory(path)) return tree;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    add(fs::relative(entry.path(), path).string(), entry.path());
  }
  return tree;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool same_contents(const Tree& a, const Tree& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, file] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.bytes != file.bytes) return false;
  }
  return true;
}

// A command and the expected state of its output.
struct Case {
  Strings command;              // without model and output
  std::string name = "inject";  // the command's name
  std::string out = "out";
  bool replaces = false;     // an output exists before
  bool hard_linked = false;  // files of the model may gain a second name
};

class Place {
 public:
  explicit Place(const Case& of) : case_(of) {
    test::write_tiny_checkpoint(temp_ / "plain", test::tiny_config(), {.n_shards = 2});
    temp_.write("plain/sub/notes.txt", "in a folder of its own");
    temp_.write("plain/tokenizer.json", std::string(100'000, ' ') + "{}");  // larger than one block
    temp_.write("scales.json", scales("0.25", "0.5"));
    temp_.write("older.json", scales("0.125", "4"));
    // "scaled" carries scales, for --replace. "expected" and "before" are whole outputs to compare
    // with.
    ok(run({"inject", "plain", "-s", "older.json", "-o", "scaled", "--link", "copy"}));
    model_ = contains(case_.command, "--replace") ? "scaled" : "plain";
    ok(run(command("expected")));
    if (case_.replaces)
      ok(run({"inject", "plain", "-s", "older.json", "-o", "before", "--link", "copy"}));
    before_ = tree_of(temp_ / "before");
    expected_ = tree_of(temp_ / "expected");
    fs::remove_all(temp_ / "expected");
    source_ = tree_of(temp_ / model_);
  }

  // The number of file operations of a run without faults.
  int count_operations() {
    reset();
    const fs::path log = temp_ / "count";
    ok(run(command(case_.out),
           {cat("LD_PRELOAD=", test::fault_shim()), "FP8KV_FAULT_LOG=" + log.string()}));
    check_outcome(0);
    return std::atoi(test::read_file(log).c_str());
  }

  // Fails one operation. Returns whether the program failed.
  bool fail_at(int operation, int error) {
    reset();
    const test::CliResult result = run(
        command(case_.out), {cat("LD_PRELOAD=", test::fault_shim()),
                             cat("FP8KV_FAULT_AT=", operation), cat("FP8KV_FAULT_ERRNO=", error)});
    INFO("operation ", operation, ", errno ", error, ": ", result.err);
    // Some failures have a fallback (a link for a reflink), so the run succeeds.
    const bool expected_code = error == kKill ? result.exit_code == 128 + SIGKILL
                                              : result.exit_code == 5 || result.exit_code == 0;
    CHECK(expected_code);
    check_outcome(result.exit_code);
    check_source();
    if (error != kKill) check_leftovers();
    return result.exit_code != 0;
  }

 private:
  static std::string scales(const std::string& first, const std::string& second) {
    return R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", "scaling_factor": )"
           R"({"0": {"0": )" +
           first + R"(, "1": )" + second + "}}}}";
  }
  static bool contains(const Strings& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
  static void ok(const test::CliResult& result) {
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }

  Strings command(const std::string& out) const {
    Strings words = {case_.name, model_, "-s", "scales.json", "-o", out, "-q"};
    words.insert(words.end(), case_.command.begin(), case_.command.end());
    return words;
  }
  test::CliResult run(const Strings& arguments, const Strings& environment = {}) const {
    return test::run_cli(arguments, {.folder = temp_.path(), .environment = environment});
  }

  // Restores the state before the run: no output, or the copy of the old one.
  void reset() {
    for (const auto& entry : fs::directory_iterator(temp_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(case_.out)) fs::remove_all(entry.path());
    }
    if (case_.replaces) {
      fs::copy(temp_ / "before", temp_ / case_.out, fs::copy_options::recursive);
      // The record must be the newest file, because it is written last.
      fs::last_write_time(temp_ / case_.out / "fp8kv-files.txt", fs::file_time_type::clock::now());
    }
    source_ = tree_of(temp_ / model_);
  }

  void check_outcome(int exit_code) const {
    const Tree out = tree_of(temp_ / case_.out);
    const bool whole = same_contents(out, expected_);
    const bool as_before = same_contents(out, before_);
    CHECK((whole || as_before));
    if (exit_code == 0) CHECK(whole);
  }

  void check_source() const {
    const Tree now = tree_of(temp_ / model_);
    REQUIRE(now.size() == source_.size());
    for (const auto& [name, before] : source_) {
      CAPTURE(name);
      const FileState& after = now.at(name);
      CHECK(after.bytes == before.bytes);
      CHECK(after.mode == before.mode);
      CHECK(after.inode == before.inode);
      CHECK(same_time(after.modified, before.modified));
      if (case_.hard_linked) {
        CHECK(after.links >= before.links);
        CHECK(after.links <= before.links + 1);
      } else {
        CHECK(after.links == before.links);
        CHECK(same_time(after.changed, before.changed));
      }
    }
  }

  // Checks that nothing stays beside the output. The old output may stay if removing it failed.
  void check_leftovers() const {
    const bool whole = same_contents(tree_of(temp_ / case_.out), expected_);
    for (const auto& entry : fs::directory_iterator(temp_.path())) {
      const std::string name = entry.path().filename().string();
      CAPTURE(name);
      if (name.starts_with(case_.out + ".fp8kv-tmp-")) CHECK((whole && case_.replaces));
    }
  }

  Case case_;
  test::TempDir temp_;
  std::string model_;
  Tree before_;
  Tree expected_;
  Tree source_;
};

// Fails every operation with each error and with a kill.
void fail_everywhere(const Case& of) {
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  Place place(of);
  const int operations = place.count_operations();
  REQUIRE(operations > 10);
  int failures = 0;
  for (int operation = 1; operation <= operations; ++operation) {
    for (const int error : {ENOSPC, EIO, EDQUOT, kKill}) {
      failures += place.fail_at(operation, error);
    }
  }
  CAPTURE(operations);
  CHECK(failures > 3 * operations);  // few operations have a fallback
}

TEST_CASE("faults: inject with copies, into a new folder") {
  fail_everywhere({.command = {"--link", "copy"}});
}

TEST_CASE("faults: inject with copies, in place of another folder") {
  fail_everywhere({.command = {"--link", "copy", "--force"}, .replaces = true});
}

TEST_CASE("faults: inject with hard links, into a new folder") {
  fail_everywhere({.command = {"--link", "hard", "--for", "vllm"}, .hard_linked = true});
}

TEST_CASE("faults: inject with whatever links there are, in place of another folder") {
  fail_everywhere({.command = {"--force"}, .replaces = true, .hard_linked = true});
}

TEST_CASE("faults: inject in place of scales that the model has") {
  fail_everywhere({.command = {"--link", "copy", "--for", "vllm", "--replace"}});
}

TEST_CASE("faults: quantize with scales, into a new folder and in place of another") {
  fail_everywhere({.command = {"--threads", "1"}, .name = "quantize"});
  fail_everywhere({.command = {"--threads", "1", "--force"}, .name = "quantize", .replaces = true});
}

TEST_CASE("faults: inject of a scale file") {
  fail_everywhere({.command = {"--for", "json"}, .out = "out.json"});
}

}  // namespace
}  // namespace fp8kv
