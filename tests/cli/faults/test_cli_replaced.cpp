// --force replaces a folder only if its record proves that fp8kv made everything in it. --force
// never replaces a link.
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Contents = std::map<std::string, std::string>;

constexpr const char* kScales = R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
  "scaling_factor": {"0": {"0": 0.5, "1": 0.1}}}})";

struct Workplace {
  Workplace() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("model/sub/notes.txt", "notes");
    temp.write("scales.json", kScales);
    temp.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n");
  }
  test::CliResult run(const Strings& arguments) const {
    return test::run_cli(arguments, temp.path());
  }
  test::CliResult inject(const Strings& more = {"--force"}) const {
    Strings command = {"inject", "model", "-s", "scales.json", "-o", "out", "--link", "copy", "-q"};
    command.insert(command.end(), more.begin(), more.end());
    return run(command);
  }
  Contents contents() const {
    Contents found;
    for (const auto& entry : fs::recursive_directory_iterator(temp.path())) {
      found[fs::relative(entry.path(), temp.path()).string()] =
          entry.is_regular_file() ? test::read_file(entry.path()) : "";
    }
    return found;
  }

  test::TempDir temp;
};

// Waits for the next time step of the file system, some milliseconds. An edit within the same step
// would have the record's time.
void pass_a_step_of_time(const Workplace& at) {
  const auto made = fs::last_write_time(at.temp / "out/fp8kv-files.txt");
  do {
    at.temp.write("probe", "x");
  } while (fs::last_write_time(at.temp / "probe") <= made);
}

void check_kept(const Workplace& at, const std::string& message) {
  CAPTURE(message);
  const Contents before = at.contents();
  const test::CliResult result = at.inject();
  CHECK(result.exit_code == 3);
  CHECK(result.err == cat("fp8kv: inject: ", message, ", so 'out' is not replaced\n",
                          "help: choose another output, or remove it yourself: rm -r out\n"));
  CHECK(at.contents() == before);
}

TEST_CASE("cli replaced: a folder that this program made is replaced") {
  const Workplace at;
  REQUIRE(at.inject({}).exit_code == 0);
  const Contents once = at.contents();
  CHECK(test::read_file(at.temp / "out/fp8kv-files.txt")
            .starts_with("fp8kv made these files: bytes, mtime of a hard link, name\n"));
  CHECK(at.inject().exit_code == 0);
  CHECK(at.contents() == once);
  CHECK(at.run({"quantize", "model", "-o", "out", "--force", "-q"}).exit_code == 0);
  CHECK(at.inject().exit_code == 0);
  CHECK(at.contents() == once);
}

TEST_CASE("cli replaced: a folder with hard links to a model is replaced, and the model is whole") {
  const Workplace at;
  const Contents before = at.contents();
  for (int times = 0; times < 3; ++times) {
    CHECK(at.run({"inject", "model", "-s", "scales.json", "-o", "out", "--link", "hard", "--force",
                  "-q"})
              .exit_code == 0);
  }
  fs::remove_all(at.temp / "out");
  CHECK(at.contents() == before);
}

TEST_CASE("cli replaced: an empty folder is replaced") {
  const Workplace at;
  fs::create_directory(at.temp / "out");
  CHECK(at.inject().exit_code == 0);
}

TEST_CASE("cli replaced: a model that somebody else made is kept") {
  const Workplace at;
  fs::copy(at.temp / "model", at.temp / "out", fs::copy_options::recursive);
  check_kept(at, "'out': has no fp8kv-files.txt, which folders of fp8kv have");
  const test::CliResult result = at.run({"quantize", "model", "-o", "out", "--force", "-q"});
  CHECK(result.exit_code == 3);
  CHECK(result.err.starts_with("fp8kv: quantize: 'out': has no fp8kv-files.txt"));
  CHECK(fs::exists(at.temp / "out/sub/notes.txt"));
}

TEST_CASE("cli replaced: a file that was added, grew, or was edited in place is kept") {
  const Workplace at;
  REQUIRE(at.inject({}).exit_code == 0);
  at.temp.write("out/more.txt", "mine");
  check_kept(at, "'out/more.txt': was not made by fp8kv, or has another size or time since");
  fs::remove(at.temp / "out/more.txt");
  fs::create_symlink("../model", at.temp / "out/link");
  check_kept(at, "'out/link': was not made by fp8kv, or has another size or time since");
  fs::remove(at.temp / "out/link");
  at.temp.write("out/sub/notes.txt", "notes of mine");
  check_kept(at, "'out/sub/notes.txt': was not made by fp8kv, or has another size or time since");
  fs::remove_all(at.temp / "out");
  REQUIRE(at.inject({}).exit_code == 0);
  const fs::path edited = at.temp / "out/sub/notes.txt";
  const auto time = fs::last_write_time(edited);
  pass_a_step_of_time(at);
  at.temp.write("out/sub/notes.txt", "NOTES");
  fs::last_write_time(edited, time);  // the ctime still reveals the edit
  check_kept(at, "'out/sub/notes.txt': changed since fp8kv made it");
}

TEST_CASE("cli replaced: an edit that was copied with its time is kept") {
  const Workplace at;
  REQUIRE(at.inject({}).exit_code == 0);
  const fs::path record = at.temp / "out/fp8kv-files.txt";
  const auto later = fs::last_write_time(record) + std::chrono::seconds(1);
  at.temp.write("out/sub/notes.txt", "NOTES");
  fs::last_write_time(at.temp / "out/sub/notes.txt", later);
  const auto time = fs::last_write_time(record);
  fs::last_write_time(record, time);  // the latest ctime of all, like after cp -a
  check_kept(at, "'out/sub/notes.txt': changed since fp8kv made it");
}

TEST_CASE("cli replaced: a record of another program, and one that is a link, prove nothing") {
  const Workplace at;
  at.temp.write("out/fp8kv-files.txt", "5 - notes.txt\n");
  at.temp.write("out/notes.txt", "notes");
  check_kept(at, "'out': has no fp8kv-files.txt, which folders of fp8kv have");
  at.temp.write("record",
                "fp8kv made these files: bytes, mtime of a hard link, name\n5 - notes.txt\n");
  fs::remove(at.temp / "out/fp8kv-files.txt");
  fs::create_symlink("../record", at.temp / "out/fp8kv-files.txt");
  check_kept(at, "'out': has no fp8kv-files.txt, which folders of fp8kv have");
}

TEST_CASE("cli replaced: names of files may hold any character") {
  const Workplace at;
  at.temp.write("model/a\nfp8kv%0A.txt", "x");
  REQUIRE(at.inject({}).exit_code == 0);
  CHECK(test::read_file(at.temp / "out/fp8kv-files.txt").find("\n1 - a%0Afp8kv%250A.txt\n") !=
        std::string::npos);
  CHECK(at.inject().exit_code == 0);
}

TEST_CASE("cli replaced: the record of a source is not that of the output") {
  const Workplace at;
  REQUIRE(at.inject({}).exit_code == 0);
  REQUIRE(
      at.run({"inject", "out", "-s", "scales.json", "-o", "again", "--replace", "-q"}).exit_code ==
      0);
  CHECK(at.run({"inject", "out", "-s", "scales.json", "-o", "again", "--replace", "--force", "-q"})
            .exit_code == 0);
}

TEST_CASE("cli replaced: what a link leads to is replaced, and the link stays") {
  const Workplace at;
  at.temp.write("real/old.json", "old");
  fs::create_symlink("real/old.json", at.temp / "s.json");
  fs::create_symlink("real/new.json", at.temp / "n.json");
  for (const char* out : {"s.json", "n.json"}) {
    const Strings command = {"calibrate", "model", "--data", "data.jsonl", "-o", out, "-q"};
    CHECK(at.run(command).exit_code == 3);
    Strings forced = command;
    forced.push_back("--force");
    CHECK(at.run(forced).exit_code == 0);
    CHECK(fs::is_symlink(at.temp / out));
  }
  CHECK(test::read_file(at.temp / "real/old.json") == test::read_file(at.temp / "n.json"));
  CHECK(test::read_file(at.temp / "real/old.json").find("scaling_factor") != std::string::npos);
  REQUIRE(at.inject({}).exit_code == 0);
  fs::rename(at.temp / "out", at.temp / "real/folder");
  fs::create_directory_symlink("real/folder", at.temp / "out");
  CHECK(at.inject().exit_code == 0);
  CHECK(fs::is_symlink(at.temp / "out"));
  CHECK(fs::exists(at.temp / "real/folder/config.json"));
}

TEST_CASE("cli replaced: hard links that come and go are no change, an edit is one") {
  const Workplace at;
  const auto inject = [&](const std::string& model, const std::string& out) {
    return at.run(
        {"inject", model, "-s", "scales.json", "-o", out, "--link", "hard", "--force", "-q"});
  };
  REQUIRE(at.run({"quantize", "model", "-o", "small", "-q"}).exit_code == 0);
  REQUIRE(inject("small", "out").exit_code == 0);
  CHECK(at.run({"quantize", "model", "-o", "small", "--force", "-q"}).exit_code == 0);
  CHECK(inject("small", "out").exit_code == 0);  // "out" held the only names of the old shards
  const fs::path shard = at.temp / "out/model-00001-of-00001.safetensors";
  REQUIRE(fs::exists(shard));
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(1));
  const test::CliResult result = inject("model", "out");
  CHECK(result.exit_code == 3);
  CHECK(
      result.err.starts_with("fp8kv: inject: 'out/model-00001-of-00001.safetensors': was not "
                             "made by fp8kv, or has another size or time since"));
}

TEST_CASE("cli replaced: links in a circle are named") {
  const Workplace at;
  fs::create_symlink("b.json", at.temp / "a.json");
  fs::create_symlink("a.json", at.temp / "b.json");
  const test::CliResult result =
      at.run({"calibrate", "model", "--data", "data.jsonl", "-o", "a.json", "--force", "-q"});
  CHECK(result.exit_code != 0);
  CHECK(result.err.find("'a.json': ") != std::string::npos);
  CHECK(fs::is_symlink(at.temp / "a.json"));
}

TEST_CASE("cli replaced: a link to a folder of inputs is refused as the folder is") {
  const Workplace at;
  fs::create_directory_symlink("model", at.temp / "out");
  const Contents before = at.contents();
  CHECK(at.inject().exit_code == 2);
  CHECK(at.contents() == before);
}

TEST_CASE("cli replaced: only the files of a finished quantize are removed with its state") {
  const Workplace at;
  at.temp.write("q.partial/notes.txt", "mine");
  const Strings command = {"quantize", "model", "-o", "q", "--resume", "-q"};
  const test::CliResult refused = at.run(command);
  CHECK(refused.exit_code == 3);
  CHECK(refused.err.starts_with(
      "fp8kv: quantize: 'q.partial': is not from an earlier run with --resume\n"));
  CHECK(test::read_file(at.temp / "q.partial/notes.txt") == "mine");
}

}  // namespace
}  // namespace fp8kv
