// Models at addresses: the requests, the results, and the cache.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "files/output/write_file.h"
#include "support/says.h"
#include "support/workplaces/hub_place.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

using test::says;

// The folder of the only model in the cache.
fs::path cached_folder(const test::HubPlace& place) {
  for (const auto& entry : fs::recursive_directory_iterator(place.temp / "cache")) {
    if (entry.path().filename() == "config.json") return entry.path().parent_path();
  }
  return {};
}

}  // namespace

TEST_CASE("cli addresses: 16 GB cost some kilobytes, and give the bytes of a local extract") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place({}, uint64_t{2} << 30);
  const test::CliResult result = place.run({"extract", "hf://org/big"});
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out == place.local());
  const std::vector<test::HubAsk> asked = place.server.asked();
  // config.json, the index, two missing files, two reads per header, then the scales of each shard.
  CHECK(asked.size() == 16);
  CHECK(place.server.body_bytes() < 20'000);
  CHECK(says(result.err, cat("read ", human_bytes(place.server.body_bytes()),
                             " of 16.0 GiB in 16 requests\n")));
}

TEST_CASE("cli addresses: the token goes to the hub, and nowhere else") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  const test::CliResult result = place.run({"extract", "hf://org/big", "-v"});
  for (const test::HubAsk& ask : place.server.asked()) {
    CAPTURE(ask.target);
    CHECK(ask.authorization == (ask.host.starts_with("localhost") ? "" : "Bearer hf_secret"));
  }
  CHECK_FALSE(says(result.err + result.out, "hf_secret"));
}

TEST_CASE("cli addresses: a second call asks which commit is meant, and offline not even that") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  place.run({"extract", "hf://org/big"});
  const size_t before = place.server.asked().size();
  CHECK(place.run({"extract", "hf://org/big"}).out == place.local());
  CHECK(place.server.asked().size() == before + 1);
  const std::string offline = "HF_HUB_OFFLINE=1";
  CHECK(place.run({"extract", "hf://org/big"}, {offline}).out == place.local());
  CHECK(place.run({"extract", cat("hf://org/big@", test::kHubCommit)}).out == place.local());
  CHECK(place.server.asked().size() == before + 1);
  const test::CliResult other = place.run({"extract", "hf://org/other"}, {offline});
  CHECK(other.exit_code == 2);
  CHECK(says(other.err, "HF_HUB_OFFLINE is set, and the cache does not have it"));
}

TEST_CASE("cli addresses: --no-cache leaves nothing behind") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  const std::string made = (place.temp / "tmp").string();
  fs::create_directories(made);
  for (const std::string& address : {std::string("hf://org/big"), place.folder("org/big")}) {
    CAPTURE(address);
    const test::CliResult result =
        place.run({"extract", address, "--no-cache"}, {"TMPDIR=" + made});
    CHECK_MESSAGE(result.out == place.local(), result.err);
    CHECK(fs::is_empty(made));
    CHECK_FALSE(fs::exists(place.temp / "cache"));
  }
}

TEST_CASE("cli addresses: what a cache lost is read again") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  place.run({"extract", "hf://org/big"});
  fs::resize_file(cached_folder(place) / "config.json", 3);
  const size_t before = place.server.asked().size();
  CHECK(place.run({"extract", "hf://org/big"}).out == place.local());
  CHECK(place.server.asked().size() == 2 * before);
  CHECK(place.run({"extract", "hf://org/big"}).out == place.local());
  CHECK(place.server.asked().size() == 2 * before + 1);
}

TEST_CASE("cli addresses: a file that somebody put into the cache is kept") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  place.run({"extract", "hf://org/big"});
  const fs::path entry = cached_folder(place);
  write_new_file(entry / "mine.txt", "mine");
  fs::resize_file(entry / "config.json", 3);
  CHECK(place.run({"extract", "hf://org/big"}).out == place.local());
  CHECK(test::read_file(entry.string() + ".damaged-1/mine.txt") == "mine");
  CHECK_FALSE(fs::exists(entry / "mine.txt"));
}

TEST_CASE("cli addresses: inspect, verify, plan and diff read them too") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  const test::CliResult inspected = place.run({"inspect", "hf://org/big"});
  CHECK(says(inspected.out, "fingerprint       not known: the weights were not read\n"));
  CHECK(says(inspected.out, "KV scales         k_scale/v_scale"));
  CHECK(place.run({"plan", "hf://org/big", "--context", "64"}).exit_code == 0);
  CHECK(place.run({"diff", "hf://org/big", "hub/org/big"}).exit_code == 0);
  const test::CliResult verified = place.run({"verify", "hf://org/big"});
  const test::CliResult local = place.run({"verify", "hub/org/big"});
  CHECK(verified.exit_code == local.exit_code);
  CHECK(says(local.out, "--model-id hub/org/big "));
  CHECK_MESSAGE(says(verified.out, "--model-id org/big "), verified.out);
}

TEST_CASE("cli addresses: a model with FP8 weights and KV scales, as inject and quantize made it") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  test::write_tiny_checkpoint(place.temp / "tiny", test::tiny_config());
  place.temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9]}\n");
  const test::CliResult made = place.run(
      {"quantize", "tiny", "--scheme", "fp8-static", "--data", "ids.jsonl", "-o", "hub/org/fp8"});
  CHECK_MESSAGE(made.exit_code == 0, made.err);
  for (const char* command : {"extract", "verify"}) {
    const test::CliResult local = place.run({command, "hub/org/fp8"});
    const test::CliResult remote = place.run({command, "hf://org/fp8"});
    CHECK_MESSAGE(remote.exit_code == local.exit_code, remote.err);
    if (std::string(command) == "extract") CHECK(remote.out == local.out);
  }
}

TEST_CASE("cli addresses: commands that need weights say how to fetch them, and ask nothing") {
  const test::HubPlace place;
  const std::vector<std::vector<std::string>> commands = {
      {"inject", "hf://org/big", "-s", "s.json", "-o", "out"},
      {"calibrate", "hf://org/big", "--data", "d.jsonl"},
      {"run", "hf://org/big", "--prompt", "x"},
      {"eval", "hf://org/big", "--data", "d.jsonl"},
      {"quantize", "hf://org/big", "-o", "out"},
      {"verify", "hf://org/big", "--with", "python3"}};
  for (const auto& arguments : commands) {
    CAPTURE(arguments[0]);
    const test::CliResult result = place.run(arguments);
    CHECK(result.exit_code == 2);
    CHECK(says(result.err, "'hf://org/big': "));
    CHECK(says(result.err, "hf download org/big --local-dir FOLDER"));
  }
  CHECK(place.server.asked().empty());
}

TEST_CASE("cli addresses: what was read is never taken for a model with weights") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  test::TinyConfig config = test::tiny_config();
  config.vocab_size = 4096;  // makes 512 KiB, more than the first read of a file
  test::write_tiny_checkpoint(place.temp / "hub/org/tiny", config);
  place.temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9]}\n");
  CHECK(place.run({"plan", "hf://org/tiny"}).exit_code == 0);
  const fs::path folder = cached_folder(place);
  const std::vector<std::vector<std::string>> commands = {
      {"run", folder.string(), "--prompts", "ids.jsonl", "-n", "1", "--json"},
      {"calibrate", folder.string(), "--data", "ids.jsonl", "-o", "out"},
      {"quantize", folder.string(), "-o", "out"}};
  for (const auto& arguments : commands) {
    CAPTURE(arguments[0]);
    const test::CliResult result = place.run(arguments);
    CHECK(result.exit_code == 3);
    CHECK_MESSAGE(says(result.err, cat("'hf://org/tiny@", test::kHubCommit, "'")), result.err);
    CHECK(says(result.err, "hf download"));
    CHECK_FALSE(fs::exists(place.temp / "out"));
  }
}

TEST_CASE("cli addresses: without the module an address says how to get it") {
  const test::HubPlace place;
  fs::copy_file(test::built_program(), place.temp / "fp8kv");
  test::CliSetup setup = place.setup();
  setup.program = place.temp / "fp8kv";
  const test::CliResult result = test::run_cli({"extract", "hf://org/big"}, setup);
  CHECK(result.exit_code == 4);
  CHECK(says(result.err, "fp8kv_http.so is not installed in "));
  CHECK(says(result.err, "libcurl4-openssl-dev"));
  CHECK(test::run_cli({"extract", "hub/org/big"}, setup).exit_code == 0);
  CHECK(place.server.asked().empty());
}

}  // namespace fp8kv
