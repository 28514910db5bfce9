// TensorRT-LLM folders at addresses.
#include <filesystem>
#include <fstream>
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

// A hub with a TensorRT-LLM folder that the real tool wrote.
struct Place : test::HubPlace {
  explicit Place(const std::string& golden) {
    fs::copy(test::source_dir() / "tests/golden/dialects" / golden, temp / "hub/org/ranks");
  }
};

TEST_CASE("cli address ranks: extract, inspect and diff equal those of the local folder") {
  if (!test::reads_addresses()) return;
  for (const char* golden : {"f8-tp1", "f8-tp2", "f8-k-and-v"}) {
    CAPTURE(std::string(golden));
    const Place place(golden);
    const test::CliResult local = place.run({"extract", "hub/org/ranks"});
    CHECK_MESSAGE(local.exit_code == 0, local.err);
    for (const std::string& address : {std::string("hf://org/ranks"), place.folder("org/ranks")}) {
      const test::CliResult remote = place.run({"extract", address});
      CHECK_MESSAGE(remote.out == local.out, remote.err);
      const test::CliResult inspected = place.run({"inspect", address});
      CHECK_MESSAGE(says(inspected.out, cat("address           ", address)), inspected.err);
      CHECK(place.run({"diff", address, "hub/org/ranks"}).exit_code == 0);
    }
  }
}

TEST_CASE("cli address ranks: weights are not read, and ranks of a gigabyte cost some kilobytes") {
  if (!test::reads_addresses()) return;
  const Place place("f8-tp2");
  const uint64_t weight_bytes = uint64_t{1} << 30;
  std::vector<TensorEntry> entries = {{"transformer.vocab_embedding.weight", DType::bf16,
                                       Shape({static_cast<int64_t>(weight_bytes / 2)}), 0,
                                       weight_bytes}};
  for (int layer = 0; layer < 3; ++layer) {
    entries.push_back({cat("transformer.layers.", layer, ".attention.kv_cache_scaling_factor"),
                       DType::f32, Shape({1}), 0, 4});
  }
  const std::string head = safetensors_head(entries, {});
  const float scales[] = {0.5f, 0.25f, 0.125f};
  for (const char* name : {"rank0.safetensors", "rank1.safetensors"}) {
    const fs::path path = place.temp / "hub/org/ranks" / name;
    fs::remove(path);
    write_new_file(path, head);
    fs::resize_file(path, head.size() + weight_bytes + sizeof scales);
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(head.size() + weight_bytes));
    out.write(reinterpret_cast<const char*>(scales), sizeof scales);
  }
  const test::CliResult remote = place.run({"extract", "hf://org/ranks"});
  CHECK_MESSAGE(remote.out == place.run({"extract", "hub/org/ranks"}).out, remote.err);
  CHECK(says(remote.out, "0.125"));
  // config.json, three missing files, the head and the scales of each rank.
  CHECK(place.server.body_bytes() < 110'000);
}

TEST_CASE("cli address ranks: a refusal is that of the local folder") {
  if (!test::reads_addresses()) return;
  const auto reason = [](const std::string& text) { return text.substr(text.find("': ")); };
  for (const char* golden : {"f8-ranks-disagree", "f8-int8"}) {
    CAPTURE(std::string(golden));
    const Place place(golden);
    const test::CliResult local = place.run({"extract", "hub/org/ranks", "-q"});
    const test::CliResult remote = place.run({"extract", "hf://org/ranks", "-q"});
    CHECK(local.exit_code == 3);
    CHECK(remote.exit_code == 3);
    CHECK(reason(remote.err) == reason(local.err));
  }
}

TEST_CASE("cli address ranks: commands that need a model folder name the address") {
  if (!test::reads_addresses()) return;
  const Place place("f8-tp2");
  for (const char* command : {"verify", "plan"}) {
    const test::CliResult result = place.run({command, "hf://org/ranks"});
    CHECK(result.exit_code == 3);
    CHECK_MESSAGE(says(result.err, cat("'hf://org/ranks@", test::kHubCommit,
                                       "': is a TensorRT-LLM folder, expected")),
                  result.err);
    CHECK(says(result.err, "help: 'fp8kv extract', 'inspect' and 'diff' read its scales"));
  }
}

TEST_CASE("cli address ranks: a rank that is missing is named") {
  if (!test::reads_addresses()) return;
  const Place place("f8-missing-rank");
  const test::CliResult result = place.run({"extract", "hf://org/ranks"});
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err, "'hf://org/ranks': rank1.safetensors"), result.err);
}

TEST_CASE("cli address ranks: a folder without safetensors says which files are looked for") {
  if (!test::reads_addresses()) return;
  const Place place("f8-tp1");
  fs::remove(place.temp / "hub/org/ranks/rank0.safetensors");
  const test::CliResult result = place.run({"extract", "hf://org/ranks"});
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err,
                     "'hf://org/ranks': has no model.safetensors, no model.safetensors.index.json "
                     "and no rank0.safetensors"),
                result.err);
  CHECK(says(result.err, "fetch the folder, and name it here"));
}

}  // namespace
}  // namespace fp8kv
