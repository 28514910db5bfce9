#include <string>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

constexpr const char* kShape =
    R"("num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
       "hidden_size": 32, "max_position_embeddings": 100)";

// A folder "model" with the tiny model's weights and another model's config.json.
struct Folder {
  Folder() { test::write_tiny_checkpoint(temp / "model", test::tiny_config()); }
  test::CliResult run(const std::string& command, const std::string& config, bool json) const {
    temp.write("model/config.json", config);
    std::vector<std::string> arguments = {command, "model"};
    if (json) arguments.push_back("--json");
    return test::run_cli(arguments, temp.path());
  }
  Json json(const std::string& command, const std::string& config) const {
    const test::CliResult result = run(command, config, true);
    CHECK(result.err == "");
    return Json::parse(result.out, command);
  }
  test::TempDir temp;
};

std::string config_of(const std::string& text, const std::string& outer = "") {
  return cat(R"({"architectures": ["NewForCausalLM"], "dtype": "bfloat16")", outer, ", ", text,
             "}");
}

std::string with(const std::string& more) {
  return config_of(more.empty() ? kShape : cat(kShape, ", ", more));
}

std::string wrapped(const std::string& key, const std::string& text) {
  return config_of(cat("\"", key, "\": {", text, "}"));
}

TEST_CASE("cli: inspect and plan agree on what a token takes, however a config says it") {
  const Folder folder;
  const std::string shape = kShape;
  // Elements of one layer: K and V of 2 heads of 8.
  const struct {
    std::string config;
    int64_t cache_layers, window_layers, elements;
    int64_t chunk_layers = 0;
  } cases[] = {
      {with(""), 4, 0, 4 * 32},
      {with(R"("sliding_window": 10)"), 4, 4, 4 * 32},
      {with(R"("layer_types": ["linear_attention", "linear_attention", "linear_attention",
               "full_attention"])"),
       1, 0, 32},
      {with(R"("full_attention_interval": 4)"), 1, 0, 32},
      {with(R"("hybrid_override_pattern": "M-*E")"), 1, 0, 32},
      {with(R"("num_kv_shared_layers": 1)"), 3, 0, 3 * 32},
      {with(R"("attention_chunk_size": 7, "layer_types": ["chunked_attention", "full_attention",
               "chunked_attention", "full_attention"])"),
       4, 0, 4 * 32, 2},
      {with(R"("v_head_dim": 4)"), 4, 0, 4 * 2 * (8 + 4)},
      {with(R"("sliding_window": 10, "global_head_dim": 16, "num_global_key_value_heads": 1,
               "attention_k_eq_v": true,
               "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
               "full_attention"])"),
       4, 2, 4 * 32},
      {wrapped("text_config", shape + R"(, "sliding_window": 10)"), 4, 4, 4 * 32},
      {wrapped("text_config", R"("n_layer": 4, "n_head": 4, "n_embd": 32, "num_kv_heads": 2,
                                 "n_positions": 100, "sliding_window": 10)"),
       4, 4, 4 * 32},
      {wrapped("thinker_config", cat(R"("text_config": {)", shape, "}")), 4, 0, 4 * 32},
  };
  for (const auto& each : cases) {
    CAPTURE(each.config);
    const Json inspected = folder.json("inspect", each.config);
    const Json planned = folder.json("plan", each.config);
    CHECK(planned.at("cache_layers").as_int() == each.cache_layers);
    CHECK(inspected.at("cache_layers").as_int() == each.cache_layers);
    CHECK(planned.at("window_layers").as_int() == each.window_layers);
    CHECK(planned.at("chunk_layers").as_int() == each.chunk_layers);
    const Json plans = planned.at("plans");
    for (size_t i = 0; i < plans.size(); ++i) {
      const std::string dtype = plans[i].at("kv_cache_dtype").as_string();
      const int64_t bytes = each.elements * (dtype.starts_with("fp8") ? 1 : 2);
      CHECK(plans[i].at("bytes_per_token").as_int() == bytes);
      CHECK(inspected.at("kv_bytes_per_token").at(dtype).as_int() == bytes);
    }
  }
}

TEST_CASE("cli: inspect says of layers what differs") {
  const Folder folder;
  const Json layers = folder
                          .json("inspect", with(R"("sliding_window": 10, "num_kv_shared_layers": 1,
          "layer_types": ["sliding_attention", "full_attention", "mamba", "sliding_attention"])"))
                          .at("layers");
  REQUIRE(layers.size() == 4);
  CHECK(layers[0].at("mixing").as_string() == "window");
  CHECK(layers[0].at("reach").as_int() == 10);
  CHECK(layers[1].at("v_head_dim").as_int() == 8);
  CHECK(layers[2].at("mixing").as_string() == "recurrent");
  CHECK_FALSE(layers[2].has("cache_of"));
  CHECK(layers[3].at("cache_of").as_int() == 0);
  CHECK(layers[3].at("feed_forward").as_string() == "unknown");
}

TEST_CASE("cli: the heads of layers that differ are listed, each with its size") {
  const Folder folder;
  const std::string gemma4 = with(R"("sliding_window": 10, "global_head_dim": 16,
      "num_global_key_value_heads": 1, "attention_k_eq_v": true, "layer_types":
      ["sliding_attention", "full_attention", "sliding_attention", "mamba"])");
  CHECK(folder.run("inspect", gemma4, false)
            .out.find("\nlayers            4; 4 heads, 2 KV heads of 8 and 1 of 16\n") !=
        std::string::npos);
  CHECK(folder.run("plan", gemma4, false)
            .out.starts_with("cache       3 layers, 2 with a window; 2 KV heads of 8 and 1 of "
                             "16\n"));
  const test::CliResult on_two = test::run_cli({"plan", "model", "--tp", "2"}, folder.temp.path());
  CHECK(
      on_two.out.starts_with("cache       3 layers, 2 with a window; 1 KV head of 8 and 1 of 16 "
                             "on each GPU\n"));
  const std::string llama4 = with(R"("attention_chunk_size": 7, "layer_types":
      ["chunked_attention", "full_attention", "chunked_attention", "chunked_attention"])");
  CHECK(folder.run("plan", llama4, false)
            .out.starts_with("cache       4 layers, 3 with chunks; 2 KV heads of 8\n"));
  const test::CliResult none =
      folder.run("inspect", with(R"("layer_types": ["mamba", "mamba", "mamba", "mamba"])"), false);
  CHECK(none.out.find("\nlayers            4; 4 heads, no KV heads\n") != std::string::npos);
}

TEST_CASE("cli: layers that are told in a way not known are said to be so") {
  const Folder folder;
  const std::string config = with(R"("block_types": [1])");
  const std::string why =
      "block_types: which layers hold what cache is said in a way not known here";
  const test::CliResult inspected = folder.run("inspect", config, false);
  CHECK(inspected.exit_code == 0);
  CHECK(inspected.out.find("\nlayers            4; 4 heads, 2 KV heads of 8\n") !=
        std::string::npos);
  CHECK(inspected.out.find("\nKV cache          not known: ") != std::string::npos);
  CHECK(inspected.out.find(why) != std::string::npos);
  CHECK(inspected.out.find("bytes a token") == std::string::npos);
  const Json json = folder.json("inspect", config);
  CHECK_FALSE(json.has("kv_bytes_per_token"));
  CHECK_FALSE(json.has("cache_layers"));
  const test::CliResult planned = folder.run("plan", config, false);
  CHECK(planned.exit_code == 3);
  CHECK(planned.err.find(why) != std::string::npos);
}

}  // namespace
}  // namespace fp8kv
