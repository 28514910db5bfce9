#include <algorithm>
#include <filesystem>
#include <string>
#include <sys/mount.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// A folder with a tiny model, tokenized data and scales.
struct Workplace {
  Workplace() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n");
    REQUIRE(
        run({"calibrate", "model", "--data", "data.jsonl", "-o", "scales.json", "-q"}).exit_code ==
        0);
  }

  test::CliResult run(const std::vector<std::string>& arguments, test::CliSetup setup = {}) const {
    setup.folder = temp.path();
    return test::run_cli(arguments, setup);
  }

  Names names() const {
    Names found;
    for (const auto& entry : fs::directory_iterator(temp.path())) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  test::TempDir temp;
};

void check_failed(const test::CliResult& result, int exit_code, const std::string& err) {
  CHECK(result.exit_code == exit_code);
  CHECK(result.out == "");
  CHECK(test::lasting_lines(result.err) == err);
}

// Removes the process id from names of temporaries.
std::string without_ids(const std::string& text) {
  return test::without_hex_after(text, ".fp8kv-tmp-");
}

const Names kUntouched = {"data.jsonl", "model", "scales.json"};

TEST_CASE("cli: an output that exists is refused before any work, and kept") {
  const Workplace at;
  at.temp.write("old", "old");
  fs::create_directory(at.temp / "folder");
  const std::string help = "help: choose another output, or pass --force to replace it\n";
  check_failed(at.run({"calibrate", "model", "--data", "no.txt", "-o", "old"}), 3,
               "fp8kv: calibrate: 'old': already exists\n" + help);
  check_failed(at.run({"inject", "model", "-s", "scales.json", "-o", "folder"}), 3,
               "fp8kv: inject: 'folder': already exists\n" + help);
  check_failed(at.run({"extract", "scales.json", "-o", "old"}), 3,
               "fp8kv: extract: 'old': already exists\n" + help);
  check_failed(at.run({"verify", "no", "--junit", "old"}), 3,
               "fp8kv: verify: 'old': already exists\n" + help);
  check_failed(at.run({"calibrate", "model", "--data", "no.txt", "-o", "folder", "--force"}), 3,
               "fp8kv: calibrate: 'folder': is a folder, expected a file\n");
  CHECK(test::read_file(at.temp / "old") == "old");
}

TEST_CASE("cli: --force replaces an output") {
  const Workplace at;
  at.temp.write("old", "old");
  CHECK(at.run({"extract", "scales.json", "-o", "old", "--force"}).exit_code == 0);
  CHECK(test::read_file(at.temp / "old") == test::read_file(at.temp / "scales.json"));
  CHECK(at.names() == Names{"data.jsonl", "model", "old", "scales.json"});
}

TEST_CASE("cli: an output in a folder that is not there is refused before any work") {
  const Workplace at;
  check_failed(at.run({"calibrate", "model", "--data", "no.txt", "-o", "no/s.json"}), 3,
               "fp8kv: calibrate: 'no': no such folder\nhelp: make it first: mkdir -p no\n");
  check_failed(at.run({"extract", "scales.json", "-o", "no/s.json"}), 3,
               "fp8kv: extract: 'no': no such folder\nhelp: make it first: mkdir -p no\n");
  check_failed(at.run({"verify", "no-model", "--junit", "no/j.xml"}), 3,
               "fp8kv: verify: 'no': no such folder\nhelp: make it first: mkdir -p no\n");
}

TEST_CASE("cli: two outputs in one file are refused before any work, however it is spelt") {
  const Workplace at;
  fs::create_directory(at.temp / "folder");
  fs::create_directory_symlink("folder", at.temp / "link");
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const test::CliResult result = at.run(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  const std::string help = "help: name another file for one of them\n";
  CHECK(refusal({"calibrate", "model", "--data", "no.txt", "-o", "a.json", "--histograms",
                 "./folder/../a.json"}) ==
        "fp8kv: calibrate: --out and --histograms are the same file: 'a.json' and "
        "'./folder/../a.json'\n" +
            help);
  CHECK(
      refusal({"eval", "model", "--data", "no.txt", "--junit", "folder/a", "--report", "link/a"}) ==
      "fp8kv: eval: --junit and --report are the same file: 'folder/a' and 'link/a'\n" + help);
  CHECK(refusal({"calibrate", "model", "--data", "no.txt", "-o", "-", "--histograms", "-"}) ==
        "fp8kv: calibrate: --out and --histograms are the same file: '-' and '-'\n" + help);
  CHECK(refusal({"calibrate", "model", "--data", "no.txt", "-o", "a.json", "--resume",
                 "--histograms", "a.json.partial"}) ==
        "fp8kv: calibrate: --histograms: 'a.json.partial' is where --resume keeps its state\n"
        "help: name another file\n");
  // A device such as /dev/null may appear twice.
  CHECK(at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "/dev/null", "--histograms",
                "/dev/null", "-q"})
            .exit_code == 0);
}

TEST_CASE("cli: --json beside scales on standard output is refused") {
  const Workplace at;
  const std::vector<std::vector<std::string>> commands = {
      {"calibrate", "model", "--data", "data.jsonl", "-o", "-"},
      {"extract", "scales.json"},
      {"merge", "scales.json", "-o", "-"},
      {"inject", "model", "-s", "scales.json", "--for", "json", "-o", "-"}};
  for (std::vector<std::string> command : commands) {
    CAPTURE(command[0]);
    command.push_back("--json");
    check_failed(at.run(command), 2,
                 "fp8kv: " + command[0] +
                     ": --json: standard output is where --out writes the scales\n"
                     "help: name a file with --out, or leave out --json\n");
  }
}

TEST_CASE("cli: a full standard output is an error in every command") {
  const Workplace at;
  const std::vector<std::vector<std::string>> commands = {
      {"calibrate", "model", "--data", "data.jsonl", "-o", "-", "-q"},
      {"extract", "scales.json", "-q"},
      {"inspect", "model"},
      {"inject", "model", "-s", "scales.json", "-o", "out", "--dry-run", "-q"},
      {"verify", "model", "-q"},
      {"verify", "model", "--json", "-q"},
  };
  for (const auto& command : commands) {
    CAPTURE(command[0]);
    check_failed(at.run(command, {.out = "/dev/full"}), 5,
                 "fp8kv: " + command[0] +
                     ": 'standard output': cannot write: No space left on device\n"
                     "help: free some space, or choose another place\n");
  }
  check_failed(at.run({"--help"}, {.out = "/dev/full"}), 5,
               "fp8kv: 'standard output': cannot write: No space left on device\n"
               "help: free some space, or choose another place\n");
}

TEST_CASE("cli: a reader of standard output that has gone is no failure") {
  const Workplace at;
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"inspect", "model"},
      {"extract", "scales.json", "-q"},
      {"calibrate", "model", "--data", "data.jsonl", "-o", "-", "-q"},
      {"verify", "scales.json", "--runtime", "sglang", "-q"},
  };
  for (const auto& command : commands) {
    CAPTURE(command[0]);
    check_failed(at.run(command, {.reader_gone = true}), 0, "");
  }
}

TEST_CASE("cli: a write that fails half-way leaves nothing behind") {
  const Workplace at;
  const test::CliSetup limit{.largest_file = 512};
  const std::string help = "help: allow larger files (ulimit -f), or choose another place\n";
  check_failed(
      at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "new.json", "-q"}, limit), 5,
      "fp8kv: calibrate: 'new.json': cannot write: File too large\n" + help);
  check_failed(at.run({"verify", "scales.json", "--runtime", "all", "--junit", "new.xml", "-q"},
                      {.out = "/dev/null", .largest_file = 512}),
               5, "fp8kv: verify: 'new.xml': cannot write: File too large\n" + help);
  const test::CliResult result =
      at.run({"inject", "model", "-s", "scales.json", "-o", "out", "--link", "copy", "-q"}, limit);
  CHECK(result.exit_code == 5);
  CHECK(without_ids(result.err) ==
        "fp8kv: inject: 'out' was not made: 'out.fp8kv-tmp-/config.json': cannot write: File too "
        "large\n" +
            help);
  CHECK(at.names() == kUntouched);
}

// A file system of 64 KiB that exists as long as this object.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path path) : path_(std::move(path)) {
    fs::create_directory(path_);
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=64k") == 0;
    if (!mounted_) test::skip("no file system may be mounted here");
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_;
};

TEST_CASE("cli: a full disk is named, and nothing is left on it") {
  const Workplace at;
  const SmallDisk disk(at.temp / "disk");
  if (!disk.mounted()) return;
  at.temp.write("disk/filler", std::string(60 << 10, 'x'));
  const test::CliResult result =
      at.run({"inject", "model", "-s", "scales.json", "-o", "disk/out", "--for", "tgi", "-q"});
  CHECK(result.exit_code == 5);
  CHECK(without_ids(result.err) ==
        "fp8kv: inject: 'disk/out' was not made: "
        "'disk/out.fp8kv-tmp-/model-kv-scales.safetensors': cannot "
        "write: No space left on device\nhelp: free some space, or choose another place\n");
  at.temp.write("disk/filler", std::string(64 << 10, 'x'));
  check_failed(at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "disk/new.json", "-q"}),
               5,
               "fp8kv: calibrate: 'disk/new.json': cannot write: No space left on device\n"
               "help: free some space, or choose another place\n");
  CHECK(std::distance(fs::directory_iterator(at.temp / "disk"), {}) == 1);
}

TEST_CASE("cli: an interrupted calibration writes nothing") {
  const Workplace at;
  const test::CliSetup setup{
      .input = "{\"input_ids\": [1, 2, 3]}\n",
      .interrupt_when = [](const auto& so_far) { return so_far.err.find("windows of") == 0; }};
  check_failed(at.run({"calibrate", "model", "--data", "-", "-o", "new.json"}, setup), 130,
               "windows of 128 tokens: the model's whole context\n"
               "fp8kv: calibrate: interrupted\n");
  CHECK(at.names() == kUntouched);
}

TEST_CASE("cli: an interrupted injection leaves no folder, half-made or temporary") {
  const Workplace at;
  // Copying such a file takes seconds. It has no blocks, and its copy is removed at once.
  const fs::path large = at.temp.write("model/large.bin", "");
  fs::resize_file(large, uintmax_t{4} << 30);
  const test::CliSetup setup{
      .interrupt_when = [&](const auto&) { return at.names() != kUntouched; },
      .signal_number = SIGTERM};
  check_failed(
      at.run({"inject", "model", "-s", "scales.json", "-o", "out", "--link", "copy", "-q"}, setup),
      130, "fp8kv: inject: interrupted\n");
  CHECK(at.names() == kUntouched);
}

TEST_CASE("cli: an interrupted run ends at once") {
  const std::string model = (test::source_dir() / "datasets/demo").string();
  std::vector<std::string> command = {"run", model, "-n", "500", "-q", "--prompt"};
  for (int i = 0; i < 200; ++i) command.push_back(cat("The day after day ", i, " is"));
  const test::CliSetup setup{.interrupt_when = [](const auto& so_far) { return so_far.out != ""; }};
  const test::CliResult result = test::run_cli(command, setup);
  CHECK(result.exit_code == 130);
  CHECK(result.out.starts_with("The day after day 0 is"));
  CHECK(result.err == "fp8kv: run: interrupted\n");
}

TEST_CASE("cli: quiet commands say nothing on stderr") {
  const Workplace at;
  CHECK(at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "q.json", "-q"}).err == "");
  CHECK(at.run({"inject", "model", "-s", "q.json", "-o", "out", "-q"}).err == "");
  CHECK(at.run({"extract", "out", "-q"}).err == "");
  CHECK(at.run({"inspect", "out", "-q"}).err == "");
}

}  // namespace
}  // namespace fp8kv
