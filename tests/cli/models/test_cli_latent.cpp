// Commands on models with latent attention: the cache format fp8_ds_mla, and sparse attention.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "files/file.h"
#include "json/json.h"
#include "support/models/random_model.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// The config of a small DeepSeek V3. `more` adds the sizes of its cache.
std::string config_of(const std::string& more) {
  return R"({
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
    "torch_dtype": "float32", "vocab_size": 77, "hidden_size": 32, "intermediate_size": 40,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "hidden_act": "silu", "tie_word_embeddings": false, "q_lora_rank": null,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1,
    "moe_intermediate_size": 8, "n_routed_experts": 2, "n_shared_experts": 1,
    "num_experts_per_tok": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
    "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc", )" +
         more + "}";
}

const char* const kSizes = R"("kv_lora_rank": 512, "qk_rope_head_dim": 64)";
const char* const kOther = R"("kv_lora_rank": 500, "qk_rope_head_dim": 64)";

struct Place {
  explicit Place(const std::string& config) {
    test::write_random_model(folder / "m", config);
    std::string ids;
    for (int i = 0; i < 60; ++i) ids += cat(i == 0 ? "" : ", ", 3 + i * 31 % 74);
    folder.write("d.jsonl", "{\"input_ids\": [" + ids + "]}\n");
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, folder.path());
  }

  test::TempDir folder;
};

// A small DeepSeek V3.2, whose indexer chooses 32 tokens.
std::string sparse_config() {
  std::string config = config_of(cat(kSizes, R"(, "index_topk": 32, "index_head_dim": 128,
                                                  "index_n_heads": 2)"));
  for (const auto& [from, to] : {std::pair{"DeepseekV3For", "DeepseekV32For"},
                                 std::pair{"\"deepseek_v3\"", "\"deepseek_v32\""},
                                 std::pair{"\"q_lora_rank\": null", "\"q_lora_rank\": 16"}}) {
    config.replace(config.find(from), std::string(from).size(), to);
  }
  return config;
}

// Four windows of 15 tokens.
std::string four_windows() {
  std::string lines;
  for (int line = 0; line < 4; ++line) {
    std::string ids;
    for (int i = 0; i < 15; ++i) ids += cat(i == 0 ? "" : ", ", 3 + (i * 31 + line * 7) % 74);
    lines += "{\"input_ids\": [" + ids + "]}\n";
  }
  return lines;
}

}  // namespace

TEST_CASE("cli latent: plan and inspect count 656 bytes a token and layer in fp8_ds_mla") {
  const Place place(config_of(kSizes));
  const Json plan = Json::parse(
      place.run({"plan", "m", "--json", "--kv-cache-dtype", "fp8,fp8_ds_mla"}).out, "stdout");
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 2 * 576);
  CHECK(plan.at("plans")[1].at("kv_cache_dtype").as_string() == "fp8_ds_mla");
  CHECK(plan.at("plans")[1].at("bytes_per_token").as_int() == 2 * 656);
  const Json inspect = Json::parse(place.run({"inspect", "m", "--json"}).out, "stdout");
  CHECK(inspect.at("kv_bytes_per_token").at("fp8_ds_mla").as_int() == 2 * 656);
}

TEST_CASE("cli latent: fp8_ds_mla is refused where the cache is not of whole blocks") {
  const Place other(config_of(kOther));
  const char* const way_out = "help: use fp8_e4m3\n";
  const std::string latent =
      "--kv-cache-dtype fp8_ds_mla: the latent of layer 0 has 500 elements, expected latents in "
      "whole blocks of 128\n";
  const test::CliResult run =
      other.run({"run", "m", "x", "--json", "-q", "--kv-cache-dtype", "fp8_ds_mla"});
  CHECK(run.exit_code == 2);
  CHECK(run.err == "fp8kv: run: " + latent + way_out);
  CHECK(other.run({"eval", "m", "--data", "d.jsonl", "-q", "--kv-cache-dtype", "fp8_ds_mla"}).err ==
        "fp8kv: eval: " + latent + way_out);
  CHECK(other.run({"plan", "m", "--kv-cache-dtype", "fp8_ds_mla"}).err ==
        "fp8kv: plan: " + latent + way_out);
  CHECK(other.run({"inspect", "m", "--json"}).out.find("fp8_ds_mla") == std::string::npos);
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  CHECK(test::run_cli({"plan", demo, "--kv-cache-dtype", "fp8_ds_mla"}).err ==
        "fp8kv: plan: --kv-cache-dtype fp8_ds_mla: layer 0 caches K and V of 2 heads, expected "
        "latents in whole blocks of 128\n" +
            std::string(way_out));
}

TEST_CASE("cli latent: eval measures fp8_ds_mla beside an FP8 cache with scales") {
  const Place place(config_of(kSizes));
  const auto evaluated = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval",   "m",  "--data",          "d.jsonl",
                                          "--json", "-q", "--greedy-tokens", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::CliResult result = place.run(arguments);
    CHECK(result.err == "");
    CHECK(result.exit_code == 0);
    return Json::parse(result.out, "stdout");
  };
  const Json both = evaluated({}).at("candidates");
  REQUIRE(both.size() == 2);
  CHECK(both[0].at("name").as_string() == "fp8_e4m3 amax");
  CHECK(both[1].at("name").as_string() == "fp8_ds_mla");
  CHECK_FALSE(both[1].has("policy"));
  CHECK(both[1].at("bytes_per_token").as_int() == 2 * 656);
  const auto error = [&](int candidate, const char* part) {
    return both[static_cast<size_t>(candidate)].at("layers")[0].at(part).at("relative_error");
  };
  // The rotated part has at most BF16's error, 2^-9. Scales per block are no worse than one scale.
  CHECK(error(1, "k").as_double() < 0x1p-9);
  CHECK(error(0, "k").as_double() > 0.01);
  CHECK(error(1, "v").as_double() <= error(0, "v").as_double() * 1.05);
  CHECK(both[1].at("total").at("kld").as_double() < both[0].at("total").at("kld").as_double());

  CHECK(evaluated({"--kv-cache-dtype", "fp8"}).at("candidates").size() == 1);
  const Json alone = evaluated({"--kv-cache-dtype", "fp8_ds_mla"}).at("candidates");
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].at("total").at("kld").as_double() == both[1].at("total").at("kld").as_double());
  // The page and the tables also work for a cache without scales.
  const test::CliResult text =
      place.run({"eval", "m", "--data", "d.jsonl", "-q", "--greedy-tokens", "0", "--kv-cache-dtype",
                 "fp8_ds_mla", "--report", "r.html"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("fp8_ds_mla") != std::string::npos);
}

TEST_CASE("cli latent: run takes fp8_ds_mla, which takes no scales") {
  const Place place(config_of(kSizes));
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "m", "--prompts", "d.jsonl", "--json", "-n", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return place.run(arguments);
  };
  const test::CliResult result = run({"--kv-cache-dtype", "fp8_ds_mla"});
  CHECK(result.err.find("KV cache: 1,312 bytes a token") != std::string::npos);
  const test::CliResult unit = run({"--unit-scales", "--kv-cache-dtype", "fp8_ds_mla"});
  CHECK(unit.exit_code == 2);
  CHECK(unit.err ==
        "fp8kv: run: scales are for an FP8 cache that makes none itself, not for --kv-cache-dtype "
        "fp8_ds_mla\n"
        "help: leave out --scales and --unit-scales, or choose fp8\n");
}

TEST_CASE("cli latent: sparse attention beyond what the indexer chooses") {
  const Place place(sparse_config());
  place.folder.write("short.jsonl", "{\"input_ids\": [5, 9, 33, 60, 7, 12]}\n");
  const test::CliResult calibrated =
      place.run({"calibrate", "m", "--data", "short.jsonl", "-o", "s.json"});
  CHECK(calibrated.exit_code == 0);
  CHECK(calibrated.err.find("windows of 64 tokens: the model's whole context") !=
        std::string::npos);
  CHECK(place.run({"calibrate", "m", "--data", "short.jsonl", "-o", "t.json", "--seq-len", "65"})
            .err ==
        "fp8kv: calibrate: --seq-len 65 is longer than the model's context, 64 "
        "(max_position_embeddings)\nhelp: --seq-len 64 is the longest\n");
  const test::CliResult run = place.run({"run", "m", "--prompts", "d.jsonl", "--json", "-q"});
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  // The bytes include the indexer's keys, like in runtimes.
  const Json plan =
      Json::parse(place.run({"plan", "m", "--json", "--kv-cache-dtype", "fp8"}).out, "stdout");
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 2 * (576 + 132));
  CHECK(plan.at("context").as_int() == 64);
  CHECK(place.run({"plan", "m"})
            .out.find(
                "indexers    2 layers; 132 bytes a token and layer, whatever the cache holds\n") !=
        std::string::npos);
}

// vLLM drops the scales of MLA. So no copy of the model is made, and `fit` measures scales of 1.
TEST_CASE("cli latent: eval and fit give no command whose scales vLLM would drop") {
  const Place place(config_of(kOther));
  place.folder.write("four.jsonl", four_windows());
  const test::CliResult calibrated =
      place.run({"calibrate", "m", "--data", "four.jsonl", "-o", "m.json", "--report", "m.html"});
  CHECK(calibrated.exit_code == 0);
  const std::string page = read_text(place.folder / "m.html");
  CHECK(page.find("vllm serve m --kv-cache-dtype fp8") != std::string::npos);
  CHECK(page.find("vLLM serves the model itself: drops the scales of MLA") != std::string::npos);
  const test::CliResult eval = place.run(
      {"eval", "m", "--data", "four.jsonl", "-q", "--greedy-tokens", "0", "--policy", "amax,unit"});
  CHECK(eval.exit_code == 0);
  CHECK(eval.out.find(
            "scales in a copy would have no use. vLLM: drops the scales of MLA, with one warning: "
            "an FP8 cache runs with 1.\n  vllm serve m --kv-cache-dtype fp8\n") !=
        std::string::npos);
  CHECK(eval.out.find("fp8kv inject") == std::string::npos);

  const std::vector<std::string> fit = {"fit", "m",         "--data", "four.jsonl",
                                        "-q",  "--max-kld", "10"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = fit;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return place.run(arguments);
  };
  const test::CliResult found = with({});
  CHECK(found.exit_code == 0);
  const std::string what =
      "vLLM 0.32 and newer: drops the scales of MLA, with one warning: an FP8 cache runs with 1";
  CHECK(found.out.find("Measured with scales of 1. " + what + ".\n") != std::string::npos);
  CHECK(
      found.out.ends_with("next      Serve it with vLLM 0.32 and newer:\n"
                          "  vllm serve m --kv-cache-dtype fp8\n"));
  CHECK(Json::parse(with({"--json"}).out, "stdout").at("scales_dropped").as_string() ==
        "drops the scales of MLA, with one warning: an FP8 cache runs with 1");
  const test::CliResult written = with({"-o", "s.json"});
  CHECK(written.exit_code == 2);
  CHECK(written.err ==
        "fp8kv: fit: --out: " + what + "\nhelp: leave it out: a scale file would have no use\n");
  // It is not known how SGLang treats these scales.
  const test::CliResult other = with({"--for", "sglang"});
  CHECK(other.out.find("fp8kv inject m --scales scales.json -o m-fp8\n") != std::string::npos);
}

// There vLLM has one FP8 cache, which makes its scales itself.
TEST_CASE("cli latent: fit measures fp8_ds_mla for sparse attention in vLLM") {
  const Place place(sparse_config());
  place.folder.write("four.jsonl", four_windows());
  const auto fit = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"fit", "m",         "--data", "four.jsonl",
                                          "-q",  "--max-kld", "10"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return place.run(arguments);
  };
  const test::CliResult found = fit({});
  CHECK(found.exit_code == 0);
  CHECK(found.out.find("choice    fp8_ds_mla in every layer meets the budget") !=
        std::string::npos);
  CHECK(
      found.out.ends_with("next      Serve it with vLLM 0.32 and newer:\n"
                          "  vllm serve m --kv-cache-dtype fp8_ds_mla\n"));
  CHECK(fit({"--kv-cache-dtype", "fp8"}).err ==
        "fp8kv: fit: --kv-cache-dtype: vLLM's FP8 cache of sparse attention is fp8_ds_mla, not "
        "fp8_e4m3\nhelp: leave it out, or name another runtime with --for\n");
  CHECK(fit({"--for", "sglang", "--kv-cache-dtype", "fp8"}).exit_code == 0);
}

}  // namespace fp8kv
