// Runs the built program on models that change while a command reads them. The command opens a pipe
// after the model, and waits there until the change is made.
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

struct Change {
  const char* name;
  std::function<void(const fs::path&)> make;
  std::string said;
};

const Change kChanges[] = {
    {"cut short", [](const fs::path& file) { fs::resize_file(file, 100'000); },
     "bytes, has 100,000"},
    {"overwritten",
     [](const fs::path& file) {
       std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
       out.seekp(1'000'000);
       out << std::string(1000, '\1');
     },
     "it was written to"},
    {"replaced",
     [](const fs::path& file) {
       fs::copy_file(file, file.string() + ".new");
       fs::rename(file.string() + ".new", file);
     },
     "another file took its name"},
};

// Waits for a reader of the pipe, then makes the change and writes `text` to it.
class Writer {
 public:
  Writer(fs::path pipe, std::string text, std::function<void()> before)
      : thread_([=, this] {
          int out = -1;
          while (out < 0 && !over_) {
            out = open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          if (out < 0) return;
          before();
          CHECK(write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
          close(out);
        }) {}
  ~Writer() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Runs a command on the demo model with "pipe" as its text, and makes the change meanwhile.
void check_refused(const Strings& command, const Change& change) {
  CAPTURE(change.name);
  const test::TempDir folder;
  fs::copy(test::source_dir() / "datasets" / "demo", folder / "m");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const fs::path shard = folder / "m/model.safetensors";
  // A document for commands with --data, and a prompt for `run`.
  std::string text = "{\"text\": \"";
  for (int i = 0; i < 20; ++i) text += "The old lighthouse keeper counted ships. ";
  text += "\"}\n";
  test::CliResult result;
  {
    const Writer writer(folder / "pipe", text, [&] { change.make(shard); });
    result = test::run_cli(command, folder.path());
  }
  CHECK(result.exit_code == 3);
  const std::string said =
      cat("fp8kv: ", command[0], ": 'm/model.safetensors': changed while it was read: ");
  const size_t at = result.err.find(said);
  INFO(result.err);
  REQUIRE(at != std::string::npos);
  CHECK(result.err.substr(at).ends_with(
      cat(change.said, "\nhelp: run the same command again once nothing writes to that file\n")));
  for (const char* output : {"out.json", "out.html", "out.json.partial"}) {
    CHECK(!fs::exists(folder / output));
  }
}

}  // namespace

TEST_CASE("cli changed files: calibrate writes nothing from a model that changed") {
  for (const Change& change : kChanges) {
    check_refused({"calibrate", "m", "--data", "pipe", "--samples", "2", "--seq-len", "64",
                   "--device", "cpu", "-o", "out.json", "--resume"},
                  change);
  }
}

TEST_CASE("cli changed files: eval writes nothing from a model that changed") {
  for (const Change& change : kChanges) {
    check_refused({"eval", "m", "--data", "pipe", "--samples", "2", "--seq-len", "64", "--device",
                   "cpu", "--policy", "amax", "--greedy-tokens", "0", "--report", "out.html"},
                  change);
  }
}

TEST_CASE("cli changed files: run ends with an error when the model changed") {
  for (const Change& change : kChanges) {
    check_refused({"run", "m", "--prompts", "pipe", "--max-new-tokens", "4", "--device", "cpu",
                   "--kv-cache-dtype", "float16"},
                  change);
  }
}

}  // namespace fp8kv
