#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/cache_layers.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

namespace fp8kv {
namespace {

Json config_with(const std::string& more, int layers = 6) {
  return Json::parse(cat(R"({"num_hidden_layers": )", layers, R"(, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 128)",
                         more.empty() ? "" : ", ", more, "}"),
                     "config.json");
}

// One character a layer: F everything, 1 to 9 a window of that many tokens, - no cache.
std::string layers_of(const Json& config) {
  std::string text;
  for (const CacheLayer& layer : parse_cache_layers(config)) {
    text += layer.k_elements == 0 ? "-" : layer.window == 0 ? "F" : cat(layer.window);
  }
  return text;
}

std::string with(const std::string& more) {
  return layers_of(config_with(more));
}

std::string error_with(const std::string& more) {
  return test::error_of([&] { parse_cache_layers(config_with(more)); });
}

TEST_CASE("cache_layers: without a word about it, every layer keeps everything") {
  CHECK(with("") == "FFFFFF");
  CHECK(parse_cache_layers(config_with(""))[0] == CacheLayer{16, 16, 0});
  CHECK(parse_cache_layers(config_with(R"("v_head_dim": 8)"))[0] == CacheLayer{16, 8, 0});
}

// What transformers makes of these configs.
TEST_CASE("cache_layers: windows as the families spell them") {
  CHECK(with(R"("model_type": "mistral", "sliding_window": 4)") == "444444");
  CHECK(with(R"("model_type": "mistral", "sliding_window": null)") == "FFFFFF");
  CHECK(with(R"("sliding_window": 4, "use_sliding_window": false, "max_window_layers": 2)") ==
        "FFFFFF");
  CHECK(with(R"("sliding_window": 4, "use_sliding_window": true, "max_window_layers": 2)") ==
        "FF4444");
  CHECK(with(R"("model_type": "gemma2", "sliding_window": 4)") == "4F4F4F");
  CHECK(with(R"("model_type": "gemma3_text", "sliding_window": 4)") == "44444F");
  CHECK(with(R"("model_type": "gemma3_text", "sliding_window": 4, "sliding_window_pattern": 3)") ==
        "44F44F");
  CHECK(with(R"("sliding_window": 4, "layer_types": ["sliding_attention", "full_attention",
             "sliding_attention", "full_attention", "full_attention", "full_attention"])") ==
        "4F4FFF");
  CHECK(with(R"("attention_chunk_size": 7, "layer_types": ["chunked_attention",
             "chunked_attention", "chunked_attention", "full_attention", "chunked_attention",
             "chunked_attention"])") == "777F77");
}

TEST_CASE("cache_layers: layers without K and V of their own hold nothing") {
  CHECK(with(R"("layer_types": ["linear_attention", "linear_attention", "linear_attention",
             "full_attention", "mamba", "conv"])") == "---F--");
  CHECK(with(R"("full_attention_interval": 3)") == "--F--F");
  CHECK(with(R"("attn_layer_period": 4, "attn_layer_offset": 1)") == "-F---F");
  CHECK(with(R"("num_kv_shared_layers": 2)") == "FFFF--");
}

TEST_CASE("cache_layers: the text part of a multimodal config counts") {
  const Json config = Json::parse(
      R"({"text_config": {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64,
          "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}})",
      "config.json");
  CHECK(layers_of(config) == "8F");
}

TEST_CASE("cache_layers: Nemotron-H has a letter for each layer") {
  CHECK(layers_of(config_with(R"("hybrid_override_pattern": "M-M*E*")")) == "---F-F");
}

TEST_CASE("cache_layers: what would be counted wrong is refused") {
  CHECK(error_with(R"("kv_lora_rank": 512)") ==
        "config.json: kv_lora_rank: attention through a latent vector (MLA) has no K and V per "
        "head");
  CHECK(error_with(R"("hybrid_override_pattern": "M-M*")") ==
        "config.json: hybrid_override_pattern: is \"M-M*\", expected 6 letters of * (attention), M "
        "(Mamba), - (MLP) and E (experts)");
  CHECK(error_with(R"("hybrid_override_pattern": "M-M*M?")") ==
        "config.json: hybrid_override_pattern: is \"M-M*M?\", expected 6 letters of * (attention), "
        "M (Mamba), - (MLP) and E (experts)");
  CHECK(error_with(R"("attn_layer_indices": [1])") ==
        "config.json: attn_layer_indices: which layers hold what cache is said in a way not known "
        "here");
  CHECK(error_with(R"("layer_types": ["full_attention"])") ==
        "config.json: layer_types: is [\"full_attention\"], expected an array of 6 layer types");
  CHECK(error_with(R"("layer_types": ["x", "x", "x", "x", "x", "x"])") ==
        "config.json: layer_types[0]: the layer type 'x' is not known");
  CHECK(error_with(R"("sliding_window": 0)") ==
        "config.json: sliding_window: is 0, expected 1 to 2147483647");
  CHECK(error_with(R"("sliding_window": 4, "max_window_layers": -1)") ==
        "config.json: max_window_layers: is -1, expected 0 to 2147483647");
}

TEST_CASE("cache_layers: a stored K projection of another shape is named") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "model", test::tiny_config());
  const Checkpoint checkpoint = Checkpoint::open(folder / "model");
  std::vector<CacheLayer> layers = parse_cache_layers(checkpoint.config());
  check_cache_layers(checkpoint, layers, 2);
  layers[1].k_elements = 16;
  CHECK(
      test::error_of([&] { check_cache_layers(checkpoint, layers, 2); }) ==
      "'model.layers.1.self_attn.k_proj.weight': has 16 rows, but config.json makes it 2 KV heads "
      "of 16");
}

}  // namespace
}  // namespace fp8kv
