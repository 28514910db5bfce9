// Runs `fp8kv quantize` as a process: outputs, messages and refusals.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"
#include "support/places.h"
#include "support/program/killed_runs.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const std::string kScales =
    R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", "scaling_factor": )"
    R"({"0": {"0": 0.25, "1": 0.5}}}})";

// A BF16 model in two shards, a text, and a scale file.
class Place {
 public:
  Place() {
    test::TinyConfig config = test::tiny_config();
    config.dtype = DType::bf16;
    test::write_tiny_checkpoint(temp_ / "m", config, {.n_shards = 2});
    temp_.write("m/notes.txt", "{}");
    temp_.write("scales.json", kScales);
    temp_.write("data.jsonl",
                "{\"input_ids\": [1, 5, 9, 33, 7, 12, 60, 2]}\n"
                "{\"input_ids\": [2, 6, 1, 44]}\n");
  }

  test::CliResult run(const Strings& arguments) const {
    return test::run_cli(arguments, temp_.path());
  }
  test::CliResult ok(const Strings& arguments) const {
    const test::CliResult result = run(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result;
  }
  // The message of a command that must be refused.
  std::string refusal(const Strings& arguments, int exit_code = 3) const {
    const test::CliResult result = run(arguments);
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    CHECK(!fs::exists(temp_ / "out"));
    return result.err;
  }
  fs::path operator/(const std::string& name) const { return temp_ / name; }
  const test::TempDir& folder() const { return temp_; }

 private:
  test::TempDir temp_;
};

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), folder).string()] = test::read_file(entry.path());
    }
  }
  return files;
}

// Kills runs until one leaves a finished shard.
bool killed_after_a_shard(const Place& place, const Strings& command) {
  return test::killed_after("out.partial/model-00001-of-00002.safetensors", place.folder().path(),
                            command);
}

}  // namespace

TEST_CASE("cli quantize: says what it wrote, what it left alone and how to serve it") {
  const Place place;
  const auto before = contents(place / "m");
  const test::CliResult result = place.ok({"quantize", "m", "-o", "out"});
  CHECK(result.out ==
        "files     config.json, model-00001-of-00002.safetensors, model-00002-of-00002.safetensors "
        "and model.safetensors.index.json written; 1 file copied\n"
        "\n"
        "fp8-dynamic: a scale for each row, inputs by token as they come\n"
        "14 matrices in FP8: all tensors took 38.3 KiB and take 24.2 KiB\n"
        "Left alone: embeddings, norms and biases; lm_head\n"
        "\n"
        "Serve it with\n"
        "  vllm serve out\n");
  CHECK(result.err == "wrote 32.0 KiB and made 'out'\n");
  CHECK(contents(place / "m") == before);
  CHECK(contents(place / "out").at("notes.txt") == "{}");
}

TEST_CASE("cli quantize: a dry run says the same files and writes nothing") {
  const Place place;
  const Json planned =
      Json::parse(place.ok({"quantize", "m", "-o", "out", "--dry-run", "--json"}).out, "planned");
  CHECK(!fs::exists(place / "out"));
  const Json made = Json::parse(place.ok({"quantize", "m", "-o", "out", "--json"}).out, "made");
  CHECK(planned.at("dry_run").as_bool());
  CHECK(!made.at("dry_run").as_bool());
  for (const char* key : {"schema", "out", "scheme", "matrices", "bytes_before", "bytes_after",
                          "left_alone", "written_bytes", "files", "serve"}) {
    CAPTURE(key);
    JsonWriter a, b;
    CHECK(a.value(planned.at(key)).text() == b.value(made.at(key)).text());
  }
  CHECK(made.at("matrices").as_int() == 14);
  uint64_t bytes = 0;
  for (const auto& [name, text] : contents(place / "out")) {
    if (name != "fp8kv-files.txt") bytes += text.size();
  }
  CHECK(made.at("written_bytes").as_int() == static_cast<int64_t>(bytes));
}

TEST_CASE("cli quantize: every command reads what it made") {
  const Place place;
  for (const char* scheme : {"fp8-dynamic", "fp8-block"}) {
    CAPTURE(scheme);
    place.ok({"quantize", "m", "-o", "out", "--scheme", scheme, "--force", "-q"});
    CHECK(place.ok({"inspect", "out"}).out.find("decoded from fp8, ") != std::string::npos);
    place.ok({"calibrate", "out", "--data", "data.jsonl", "-o", "of-fp8.json", "--force",
              "--device", "cpu"});
    place.ok({"inject", "out", "-s", "of-fp8.json", "-o", "kv", "--force"});
  }
}

TEST_CASE("cli quantize: KV scales of a file are in the folder, as inject would put them") {
  const Place place;
  const test::CliResult result =
      place.ok({"quantize", "m", "-o", "out", "--scales", "scales.json"});
  place.ok({"quantize", "m", "-o", "weights", "-q"});
  place.ok({"inject", "weights", "--scales", "scales.json", "-o", "apart", "-q",
            "--accept-foreign-scales"});
  auto made = contents(place / "out");
  made["fp8kv-files.txt"] = contents(place / "apart").at("fp8kv-files.txt");  // hard links there
  CHECK(made == contents(place / "apart"));
  CHECK(
      result.out.ends_with("  vllm serve out --kv-cache-dtype fp8\n"
                           "  python3 -m sglang.launch_server --model-path out "
                           "--kv-cache-dtype fp8_e4m3\n"
                           "  text-generation-launcher --model-id out --kv-cache-dtype "
                           "fp8_e4m3fn\n"));
  const Json config = Json::read(place / "out/config.json");
  CHECK(config.at("quantization_config").at("kv_cache_scheme").at("strategy").as_string() ==
        "tensor");
  place.ok({"verify", "out"});
  place.ok({"extract", "out", "-o", "again.json"});
  const Json again = Json::read(place / "again.json");
  CHECK(again.at("kv_cache").at("scaling_factor").at("0").at("1").as_double() == 0.5);
}

TEST_CASE("cli quantize: with --data it calibrates, and the scales are those of calibrate") {
  const Place place;
  place.ok({"quantize", "m", "-o", "out", "--data", "data.jsonl", "--device", "cpu"});
  place.ok({"calibrate", "m", "--data", "data.jsonl", "-o", "s.json", "--device", "cpu"});
  place.ok({"diff", "out", "s.json"});
  place.ok({"verify", "out"});
}

TEST_CASE("cli quantize: a model in one file becomes one, unless scales come beside it") {
  const Place place;
  test::write_tiny_checkpoint(place / "single", test::tiny_config());
  place.ok({"quantize", "single", "-o", "out", "-q"});
  CHECK(fs::exists(place / "out/model.safetensors"));
  CHECK(!fs::exists(place / "out/model.safetensors.index.json"));
  place.ok({"quantize", "single", "-o", "out", "-q", "--force", "-s", "scales.json"});
  CHECK(!fs::exists(place / "out/model.safetensors"));
  CHECK(fs::exists(place / "out/model-00001-of-00001.safetensors"));
  place.ok({"verify", "out"});
}

TEST_CASE("cli quantize: weights that the model is not read from stay behind") {
  const Place place;
  place.folder().write("m/consolidated.safetensors", "x");
  place.folder().write("m/original/params.json", "{}");
  place.folder().write("m/original/consolidated.00.pth", "x");
  const test::CliResult result = place.ok({"quantize", "m", "-o", "out"});
  CHECK(result.err.find("left behind: 'consolidated.safetensors': weights that the model is not "
                        "read from\n") != std::string::npos);
  CHECK(!fs::exists(place / "out/consolidated.safetensors"));
  CHECK(!fs::exists(place / "out/original/consolidated.00.pth"));
  CHECK(fs::exists(place / "out/original/params.json"));
}

TEST_CASE("cli quantize: refuses by name, with a way out") {
  const Place place;
  CHECK(place.refusal({"quantize", "m", "-o", "m/out"}, 2) ==
        "fp8kv: quantize: 'm/out': is within the source 'm', which is never modified\n"
        "help: choose an output elsewhere\n");
  CHECK(place.refusal({"quantize", "m", "-o", "-"}, 2) ==
        "fp8kv: quantize: --out: '-' is no folder\nhelp: name a folder to make\n");
  place.ok({"quantize", "m", "-o", "fp8", "-q"});
  CHECK(place.refusal({"quantize", "m", "-o", "fp8"}) ==
        "fp8kv: quantize: 'fp8': already exists\n"
        "help: choose another output, or pass --force to replace it\n");
  CHECK(place.refusal({"quantize", "fp8", "-o", "out"}) ==
        "fp8kv: quantize: 'fp8': is quantised by 'compressed-tensors' already\n"
        "help: quantise the model in 16 bit that this one was made from\n");
  place.ok({"inject", "m", "-s", "scales.json", "-o", "kv", "-q"});
  CHECK(place.refusal({"quantize", "kv", "-o", "out"}) ==
        "fp8kv: quantize: 'kv': is quantised by 'compressed-tensors' for its KV cache\n"
        "help: quantise the model that this one was made from; --scales 'kv' brings its scales "
        "along\n");
  place.ok({"quantize", "m", "-o", "both", "-q", "--scales", "kv"});
  CHECK(place.refusal({"quantize", "m", "-o", "out", "--scales", "s", "--data", "d"}, 2)
            .starts_with("fp8kv: quantize: --scales and --data cannot be given together"));
  CHECK(place.refusal({"quantize", "m", "-o", "out", "--scheme", "int8"}, 2).find("fp8-dynamic") !=
        std::string::npos);
}

TEST_CASE("cli quantize: what says how to calibrate is refused without --data, never ignored") {
  const Place place;
  const std::vector<Strings> flags = {
      {"--samples", "4"},     {"--seq-len", "8"},       {"--column", "text"},
      {"--shuffle", "1"},     {"--split", "train"},     {"--chat-template", "none"},
      {"--policy", "amax*2"}, {"--max-memory", "1GiB"}, {"--user-special-tokens"}};
  for (const Strings& flag : flags) {
    for (Strings command : {Strings{"quantize", "m", "-o", "out"},
                            Strings{"quantize", "m", "-o", "out", "-s", "scales.json"}}) {
      command.insert(command.end(), flag.begin(), flag.end());
      CHECK(place.refusal(command, 2) == cat("fp8kv: quantize: ", flag[0], " requires --data\n",
                                             "help: see 'fp8kv quantize --help'\n"));
    }
  }
}

TEST_CASE("cli quantize: an architecture that is not known is named") {
  const Place place;
  const std::string config = test::read_file(place / "m/config.json");
  place.folder().write("m/config.json",
                       json_with_member(config, "architectures", "[\"NewForCausalLM\"]"));
  CHECK(place.refusal({"quantize", "m", "-o", "out"}).find("'NewForCausalLM'") !=
        std::string::npos);
}

TEST_CASE("cli quantize: --resume writes a finished shard anew that was damaged since") {
  const Place place;
  place.ok({"quantize", "m", "-o", "expected", "-q"});
  const Strings command = {"quantize", "m", "-o", "out", "--resume"};
  const std::string shard = "out.partial/model-00001-of-00002.safetensors";
  const auto resume_after = [&](const std::function<void()>& damage) {
    fs::remove_all(place / "out");
    REQUIRE(killed_after_a_shard(place, command));
    damage();
    const test::CliResult result = place.ok(command);
    auto made = contents(place / "out");
    made["fp8kv-files.txt"] = contents(place / "expected").at("fp8kv-files.txt");  // times of links
    CHECK(made == contents(place / "expected"));
    CHECK(!fs::exists(place / "out.partial"));
    CHECK(result.err.find("of an earlier run") == std::string::npos);
    return result.err.find(cat("warning: '", shard,
                               "': changed since it was finished: its size or its SHA-256 is not "
                               "the one that was recorded; it is written anew\n")) !=
           std::string::npos;
  };
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  CHECK(resume_after([&] {
    std::string bytes = test::read_file(place / shard);
    bytes[bytes.size() - 5] ^= 1;
    place.folder().write(shard, bytes);
  }));
  CHECK(resume_after([&] { fs::resize_file(place / shard, fs::file_size(place / shard) - 1); }));
  CHECK(resume_after([&] { fs::remove(place / (shard + ".sha256")); }));
}

TEST_CASE("cli quantize: --resume takes finished shards, of the same run alone") {
  const Place place;
  place.ok({"quantize", "m", "-o", "expected", "-q"});
  if (test::fault_shim().empty()) {
    test::skip("sanitizers must be loaded before the shim");
    return;
  }
  const Strings command = {"quantize", "m", "-o", "out", "--resume", "--threads", "1"};
  REQUIRE(killed_after_a_shard(place, command));
  Strings other = command;
  other.insert(other.end(), {"--scheme", "fp8-block"});
  CHECK(place.refusal(other).ends_with(
      "fp8kv: quantize: 'out.partial': is of a run with another model, other options or another "
      "version\nhelp: run that again to go on, or remove it: rm -r out.partial\n"));
  const test::CliResult result = place.ok(command);
  CHECK(result.err.find("took 1 shard of an earlier run\n") != std::string::npos);
  auto made = contents(place / "out");
  made["fp8kv-files.txt"] = contents(place / "expected").at("fp8kv-files.txt");
  CHECK(made == contents(place / "expected"));
  CHECK(!fs::exists(place / "out.partial"));
}

TEST_CASE("cli quantize: an interrupt leaves nothing, or with --resume what is done") {
  test::TempDir temp;
  test::TinyConfig config = test::tiny_config();
  config.dtype = DType::bf16;
  config.hidden_dim = 100'000;
  test::write_tiny_checkpoint(temp / "m", config, {.n_shards = 2});
  const auto interrupted = [&](Strings more) {
    Strings command = {"quantize", "m", "-o", "out", "--threads", "1"};
    command.insert(command.end(), more.begin(), more.end());
    return test::run_cli(command,
                         {.folder = temp.path(), .interrupt_when = [&](const test::CliResult&) {
                            for (const auto& entry : fs::directory_iterator(temp.path())) {
                              if (entry.path().filename().string().starts_with("out.")) return true;
                            }
                            return false;
                          }});
  };
  const test::CliResult result = interrupted({});
  CHECK(result.exit_code == 130);
  CHECK(result.err == "fp8kv: quantize: interrupted\n");
  CHECK(std::distance(fs::directory_iterator(temp.path()), {}) == 1);
}

TEST_CASE("cli eval: --against measures a quantised model on the predictions of the original") {
  const Place place;
  place.ok({"quantize", "m", "-o", "fp8", "-q"});
  const auto eval = [&](const std::string& model, const Strings& more) {
    Strings command = {"eval",   model,        "--data",  "data.jsonl",
                       "--json", "--baseline", "float32", "--greedy-tokens",
                       "2",      "--device",   "cpu"};
    command.insert(command.end(), more.begin(), more.end());
    return Json::parse(place.ok(command).out, model);
  };
  const auto nll = [](const Json& candidate) {
    return candidate.at("total").at("nll").as_double();
  };
  const Json against = eval("fp8", {"--against", "m"});
  const Json original = eval("m", {"--kv-cache-dtype", "bfloat16"});
  const Json quantised = eval("fp8", {"--kv-cache-dtype", "bfloat16"});
  CHECK(against.at("against").as_string() == "m");
  CHECK(against.at("baseline").at("name").as_string() == "m float32");
  CHECK(nll(against.at("baseline")) == nll(original.at("baseline")));
  REQUIRE(against.at("candidates").size() == 1);
  const Json candidate = against.at("candidates")[0];
  CHECK(candidate.at("name").as_string() == "bfloat16");
  CHECK(nll(candidate) == nll(quantised.at("candidates")[0]));
  CHECK(nll(candidate) != nll(against.at("baseline")));
  CHECK(candidate.at("total").at("kld").as_double() > 0);
  CHECK(candidate.at("total").at("kld").as_double() < 0.01);
}

TEST_CASE("cli eval: a model against itself has lost nothing, and each cache is there once") {
  const Place place;
  const Json same =
      Json::parse(place
                      .ok({"eval", "m", "--against", "m/", "--data", "data.jsonl", "--json",
                           "--device", "cpu", "--kv-cache-dtype", "auto,fp8", "--unit-scales"})
                      .out,
                  "same");
  REQUIRE(same.at("candidates").size() == 2);
  const Json own = same.at("candidates")[0].at("total");
  CHECK(own.at("kld").as_double() == 0);
  CHECK(own.at("ppl_delta").as_double() == 0);
  CHECK(own.at("top1").as_double() == 1);
  CHECK(same.at("candidates")[1].at("total").at("kld").as_double() > 0);
  CHECK(same.at("baseline").at("name").as_string() == "m bfloat16");
}

TEST_CASE("cli eval: gates look at a model that is compared with another, and need its tokens") {
  const Place place;
  place.ok({"quantize", "m", "-o", "fp8", "-q"});
  const test::CliResult failed = place.run({"eval", "fp8", "--against", "m", "--data", "data.jsonl",
                                            "--device", "cpu", "--fail-if", "kld >= 0", "-q"});
  CHECK(failed.exit_code == 1);
  CHECK(failed.err.starts_with("fp8kv: eval: 1 of 1 check failed; bfloat16: kld is "));
  test::TinyConfig config = test::tiny_config();
  config.vocab_size = 65;
  test::write_tiny_checkpoint(place / "other", config);
  CHECK(place.refusal({"eval", "fp8", "--against", "other", "--data", "data.jsonl", "--device",
                       "cpu", "-q"}) ==
        "fp8kv: eval: 'other': has 65 tokens, and 'fp8' has 64\n"
        "help: compare models with the same tokenizer\n");
}

}  // namespace fp8kv
