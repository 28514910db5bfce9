#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

Json config_with(const std::string& more, int layers = 6) {
  return Json::parse(cat(R"({"num_hidden_layers": )", layers, R"(, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 128)",
                         more.empty() ? "" : ", ", more, "}"),
                     "config.json");
}

// One character per layer: F for full attention, 1 to 9 for a window or chunk of so many tokens, -
// for a layer without its own cache.
std::string layers_of(const Json& config) {
  const ModelDescription model = describe_model(config);
  std::string text;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    const int64_t reach = model.layer(i).reach;
    text += !model.writes_cache(i) ? "-" : reach == 0 ? "F" : cat(reach);
  }
  return text;
}

std::string with(const std::string& more) {
  return layers_of(config_with(more));
}

// The reason why the layers are not known.
std::string unclear_with(const std::string& more) {
  const ModelDescription model = describe_model(config_with(more));
  REQUIRE(model.unclear);
  for (const LayerDescription& layer : model.layers) {
    CHECK(layer == LayerDescription{Mixing::unknown, 0, 2, 16, 16, -1, layer.feed_forward});
  }
  return model.unclear->what();
}

TEST_CASE("describe_layers: without a word about it, every layer keeps everything") {
  CHECK(with("") == "FFFFFF");
  const auto first = [](const char* more) { return describe_model(config_with(more)).layer(0); };
  CHECK(first("") == LayerDescription{Mixing::full, 0, 2, 16, 16, 0, FeedForward::unknown});
  CHECK(first(R"("v_head_dim": 8)").v_head_dim == 8);
}

// The results of transformers for these configs.
TEST_CASE("describe_layers: windows as the families spell them") {
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

// Source: the config classes and models of transformers 5.24 and 4.57.
TEST_CASE("describe_layers: keys of windows that a family does not read move no window") {
  const std::string others = R"(, "sliding_window": 4, "max_window_layers": 2,
      "sliding_window_pattern": 3, "use_sliding_window": false)";
  const std::string typed = others + R"(, "layer_types": ["full_attention", "sliding_attention",
      "full_attention", "full_attention", "full_attention", "full_attention"])";
  for (const char* type : {"ministral3", "mixtral", "phi3", "starcoder2"}) {
    CAPTURE(type);
    CHECK(with(cat(R"("model_type": ")", type, "\"", typed)) == "444444");
  }
  CHECK(with(R"("model_type": "gemma2")" + others) == "4F4F4F");
  CHECK(with(R"("model_type": "gpt_oss")" + others) == "4F4F4F");
  CHECK(with(R"("model_type": "olmo3")" + others) == "444F44");
  CHECK(with(R"("model_type": "cohere2")" + others) == "44F44F");
  CHECK(with(R"("model_type": "gemma3_text")" + others) == "44F44F");
  CHECK(with(R"("architectures": ["MixtralForCausalLM"])" + typed) == "444444");
}

// Source: the config classes of transformers 5.24 and 4.57, which agree.
TEST_CASE("describe_layers: a config without sliding_window has the window of its family") {
  const auto reaches = [](const std::string& more) {
    const ModelDescription model = describe_model(config_with(more));
    std::vector<int64_t> out;
    for (const LayerDescription& layer : model.layers) out.push_back(layer.reach);
    return out;
  };
  using Reaches = std::vector<int64_t>;
  CHECK(reaches(R"("model_type": "gemma2")") == Reaches{4096, 0, 4096, 0, 4096, 0});
  CHECK(reaches(R"("model_type": "cohere2")") == Reaches{4096, 4096, 4096, 0, 4096, 4096});
  CHECK(reaches(R"("model_type": "olmo3")") == Reaches{4096, 4096, 4096, 0, 4096, 4096});
  CHECK(reaches(R"("model_type": "gemma3_text")") == Reaches{4096, 4096, 4096, 4096, 4096, 0});
  CHECK(reaches(R"("model_type": "gemma4_text")") == Reaches{512, 512, 512, 512, 512, 0});
  CHECK(reaches(R"("model_type": "gemma2", "layer_types": ["full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention", "sliding_attention"])") ==
        Reaches{0, 0, 0, 0, 0, 4096});
  for (const char* type : {"qwen2", "qwen3", "qwen2_vl_text", "qwen2_5_vl_text"}) {
    CAPTURE(type);
    const std::string named = cat(R"("model_type": ")", type, R"(", "max_window_layers": 4)");
    CHECK(reaches(named + R"(, "use_sliding_window": true)") == Reaches{0, 0, 0, 0, 4096, 4096});
    CHECK(reaches(named) == Reaches(6, 0));
  }
  CHECK(reaches(R"("model_type": "mixtral")") == Reaches(6, 0));
  CHECK(reaches(R"("model_type": "gemma2", "sliding_window": null)") == Reaches(6, 0));
}

// Llama 4 Scout's config.json has "no_rope_layers": [] and no layer_types.
TEST_CASE("describe_layers: of Llama 4 every fourth layer sees more than its chunk") {
  CHECK(with(R"("attention_chunk_size": 7, "no_rope_layers": [])") == "777F77");
  CHECK(with(R"("attention_chunk_size": 7)") == "777F77");
  CHECK(with(R"("attention_chunk_size": 7, "no_rope_layer_interval": 2)") == "7F7F7F");
  CHECK(with(R"("attention_chunk_size": 7, "no_rope_layers": [1, 0, 0, 1, 1, 1])") == "7FF777");
  CHECK(with(R"("attention_chunk_size": null)") == "FFFFFF");
}

TEST_CASE("describe_layers: layers without K and V of their own hold nothing") {
  CHECK(with(R"("layer_types": ["linear_attention", "linear_attention", "linear_attention",
             "full_attention", "mamba", "conv"])") == "---F--");
  CHECK(with(R"("full_attention_interval": 3)") == "--F--F");
  CHECK(with(R"("attn_layer_period": 4, "attn_layer_offset": 1)") == "-F---F");
  CHECK(with(R"("full_attn_idxs": [1, 4])") == "-F--F-");
  CHECK(with(R"("full_attn_idxs": [1], "layer_types": ["conv", "conv", "full_attention", "conv",
             "conv", "conv"])") == "--F---");
  CHECK(with(R"("full_attn_idxs": null)") == "FFFFFF");
  CHECK(with(R"("attn_layer_indices": [1, 4])") == "-F--F-");
  CHECK(with(R"("model_type": "bamba", "attn_layer_indices": null)") == "------");
  CHECK(with(R"("model_type": "granitemoehybrid")") == "------");
  CHECK(with(R"("num_kv_shared_layers": 2)") == "FFFF--");
}

TEST_CASE("describe_layers: layers of Falcon-H1 keep a state beside their cache") {
  const ModelDescription model = describe_model(
      config_with(R"("model_type": "falcon_h1", "mamba_n_heads": 24, "mamba_d_state": 128,
                     "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_conv": 4)"));
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    CHECK(model.writes_cache(i));
    CHECK(model.attends(i));
    CHECK(model.keeps_state(i));
    CHECK(model.layer(i).state_bytes == 24 * 128 * 64 * 4 + 3 * (24 * 64 + 2 * 128) * 2);
  }
}

// transformers 5.24 pads the number with zeros in models with ten layers or more.
TEST_CASE("describe_layers: a layer's own heads are those of its number, zeros in front or not") {
  const auto head_dim = [](const char* number, int64_t layer) {
    const Json config = config_with(cat(R"("model_type": "gemma4_text", "per_layer_config": {")",
                                        number, R"(": {"head_dim": 32}})"),
                                    12);
    return describe_model(config).layer(layer).k_head_dim;
  };
  CHECK(head_dim("5", 5) == 32);
  CHECK(head_dim("05", 5) == 32);
  CHECK(head_dim("05", 4) == 16);
  CHECK(head_dim("11", 11) == 32);
  const auto error = [](const char* number) {
    return unclear_with(cat(R"("model_type": "gemma4_text", "per_layer_config": {")", number,
                            R"(": {"head_dim": 32}})"));
  };
  for (const char* number : {"6", "06", "5x", "x", "-1"}) {
    CAPTURE(number);
    CHECK(error(number) == cat("config.json: per_layer_config.", number, ": is for layer '", number,
                               "', expected a number from 0 to 5"));
  }
}

TEST_CASE("describe_layers: the text part of a multimodal config counts") {
  const Json config = Json::parse(
      R"({"text_config": {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64,
          "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}})",
      "config.json");
  CHECK(layers_of(config) == "8F");
}

TEST_CASE("describe_layers: Nemotron-H has a letter for each layer") {
  CHECK(layers_of(config_with(R"("hybrid_override_pattern": "M-M*E*")")) == "---F-F");
}

// transformers 5 writes this list for Nemotron-H and for other families.
TEST_CASE("describe_layers: a list with a name for each layer says how many there are") {
  const auto listed = [](const std::string& key, const std::string& types) {
    return Json::parse(cat(R"({"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
        "hidden_size": 128, "model_type": "nemotron_h", ")",
                           key, R"(": )", types, "}"),
                       "config.json");
  };
  CHECK(layers_of(listed("layers_block_type", R"(["linear_attention", "full_attention", "mlp",
                         "moe", "full_attention"])")) == "-F--F");
  CHECK(layers_of(listed("layers_block_type", R"(["mamba", "attention", "mlp"])")) == "-F-");
  CHECK(layers_of(listed("layer_types", R"(["full_attention", "linear_attention"])")) == "F-");
  CHECK(layers_of(listed("hybrid_override_pattern", R"("M-M*")")) == "---F");
  CHECK(test::error_of([&] { describe_model(listed("layer_types", "[]")); }) ==
        "config.json: layer_types: is [], expected 1 to 4096 layers");
  CHECK(unclear_with(R"("layers_block_type": ["mamba", "attention"])") ==
        "config.json: layers_block_type: is [\"mamba\", \"attention\"], expected an array of 6 "
        "layer types");
}

TEST_CASE("describe_layers: what would be counted wrong is not known") {
  CHECK(unclear_with(R"("hybrid_override_pattern": "M-M*")") ==
        "config.json: hybrid_override_pattern: is \"M-M*\", expected 6 letters of * (attention), M "
        "(Mamba), - (MLP) and E (experts)");
  CHECK(unclear_with(R"("hybrid_override_pattern": "M-M*M?")") ==
        "config.json: hybrid_override_pattern: is \"M-M*M?\", expected 6 letters of * (attention), "
        "M (Mamba), - (MLP) and E (experts)");
  CHECK(unclear_with(R"("block_types": [1])") ==
        "config.json: block_types: which layers hold what cache is said in a way not known here");
  CHECK(unclear_with(R"("hybrid_layer_pattern": [0, 1, 1, 0, 1, 1])") ==
        "config.json: hybrid_layer_pattern: which layers hold what cache is said in a way not "
        "known here");
  CHECK(unclear_with(R"("attn_layer_period": 4, "attn_layer_offset": 4)") ==
        "config.json: attn_layer_offset: is 4, expected 0 to 3");
  CHECK(unclear_with(R"("full_attn_idxs": [1, 6])") ==
        "config.json: full_attn_idxs[1]: is 6, expected 0 to 5");
  CHECK(unclear_with(R"("full_attn_idxs": 2)") ==
        "config.json: full_attn_idxs: is 2, expected an array of layer numbers");
  CHECK(unclear_with(R"("attention_chunk_size": 7, "no_rope_layers": [1, 0])") ==
        "config.json: no_rope_layers: is [1, 0], expected an array of 6 numbers");
  CHECK(unclear_with(R"("layer_types": ["full_attention"])") ==
        "config.json: layer_types: is [\"full_attention\"], expected an array of 6 layer types");
  CHECK(unclear_with(R"("layer_types": ["x", "x", "x", "x", "x", "x"])") ==
        "config.json: layer_types[0]: the layer type 'x' is not known");
  CHECK(unclear_with(R"("sliding_window": 0)") ==
        "config.json: sliding_window: is 0, expected 1 to 2147483647");
  CHECK(unclear_with(R"("sliding_window": 4, "max_window_layers": -1)") ==
        "config.json: max_window_layers: is -1, expected 0 to 2147483647");
}

TEST_CASE("describe_layers: members of a wrong type make layers unclear") {
  CHECK(unclear_with(R"("sliding_window": "4k")") ==
        "config.json: sliding_window: is a string (\"4k\"), expected an integer");
  CHECK(unclear_with(R"("layer_types": [0, 1, 0, 1, 0, 1])") ==
        "config.json: layer_types[0]: is a number (0), expected a string");
  CHECK(unclear_with(R"("hybrid_override_pattern": ["M", "*", "-", "M", "*", "-"])") ==
        "config.json: hybrid_override_pattern: is an array "
        "([\"M\", \"*\", \"-\", \"M\", \"*\", \"-\"]), expected a string");
  CHECK(unclear_with(R"("sliding_window": 4, "use_sliding_window": 1)") ==
        "config.json: use_sliding_window: is a number (1), expected true or false");
  CHECK(unclear_with(R"("full_attention_interval": [3])") ==
        "config.json: full_attention_interval: is an array ([3]), expected an integer");
  CHECK(unclear_with(R"("num_kv_shared_layers": "2")") ==
        "config.json: num_kv_shared_layers: is a string (\"2\"), expected an integer");
}

TEST_CASE("describe_layers: chunks are no window, and Mamba is no MLP") {
  const ModelDescription llama4 = describe_model(config_with(
      R"("attention_chunk_size": 7, "layer_types": ["chunked_attention", "full_attention"])", 2));
  CHECK(llama4.layer(0).mixing == Mixing::chunks);
  CHECK(llama4.window(0) == 0);
  const ModelDescription nemotron =
      describe_model(config_with(R"("hybrid_override_pattern": "M-*E")", 4));
  CHECK(nemotron.layer(0).mixing == Mixing::recurrent);
  CHECK(nemotron.layer(1).mixing == Mixing::none);
  CHECK(nemotron.layer(1).n_kv_heads == 0);
  CHECK(nemotron.layer(1).feed_forward == FeedForward::plain);
  CHECK(nemotron.layer(2).feed_forward == FeedForward::none);
  CHECK(nemotron.layer(3).feed_forward == FeedForward::experts);
}

// Gemma 3n and 4: the last layers read the cache of the last earlier layer of their kind.
TEST_CASE("describe_layers: shared caches are those of the same kind") {
  const ModelDescription model = describe_model(config_with(
      R"("sliding_window": 4, "num_kv_shared_layers": 3, "layer_types": ["sliding_attention",
         "sliding_attention", "full_attention", "sliding_attention", "full_attention",
         "sliding_attention"])"));
  std::vector<int64_t> caches;
  for (const LayerDescription& layer : model.layers) caches.push_back(layer.cache_of);
  CHECK(caches == std::vector<int64_t>{0, 1, 2, 1, 2, 1});
  CHECK(model.cache_layers() == 3);
  const ModelDescription gemma3n = describe_model(Json::parse(
      R"({"model_type": "gemma3n_text", "num_hidden_layers": 30, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4})",
      "config.json"));
  CHECK(gemma3n.cache_layers() == 15);  // its config may omit this number
  CHECK(gemma3n.layer(19).cache_of == 14);
  CHECK(gemma3n.layer(20).cache_of == 13);
  CHECK(
      unclear_with(R"("num_kv_shared_layers": 6)") ==
      "config.json: num_kv_shared_layers: leaves layer 0 no layer of its kind whose cache it could "
      "read");
}

TEST_CASE("describe_layers: layers without a window may have heads of their own size") {
  const auto gemma4 = [](const char* k_eq_v) {
    return describe_model(config_with(
        cat(R"("sliding_window": 4, "global_head_dim": 32, "num_global_key_value_heads": 1,
               "layer_types": ["sliding_attention", "full_attention"], "attention_k_eq_v": )",
            k_eq_v),
        2));
  };
  const LayerDescription window = {Mixing::window, 4, 2, 16, 16, 0, FeedForward::unknown};
  CHECK(gemma4("true").layer(0) == window);
  CHECK(gemma4("true").layer(1) ==
        LayerDescription{Mixing::full, 0, 1, 32, 32, 1, FeedForward::unknown, 0, false, true});
  // transformers counts global KV heads only if K also serves as V.
  for (const char* apart : {"false", "null"}) {
    CHECK(gemma4(apart).layer(0) == window);
    CHECK(gemma4(apart).layer(1) ==
          LayerDescription{Mixing::full, 0, 2, 32, 32, 1, FeedForward::unknown});
  }
}

}  // namespace
}  // namespace fp8kv
