#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"

namespace fp8kv {
namespace {

Json config_with(const std::string& more) {
  return Json::parse(cat(R"({"num_hidden_layers": 6, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 128)",
                         more.empty() ? "" : ", ", more, "}"),
                     "config.json");
}

// The first letter of each layer's feed-forward kind: gated, plain, experts, unknown.
std::string parts_of(const std::string& more) {
  std::string text;
  for (const LayerDescription& layer : describe_model(config_with(more)).layers) {
    text += feed_forward_name(layer.feed_forward)[0];
  }
  return text;
}

TEST_CASE("describe_feed_forward: experts, gates and plain parts as the families spell them") {
  CHECK(parts_of("") == "uuuuuu");
  CHECK(parts_of(R"("hidden_act": "silu")") == "gggggg");
  CHECK(parts_of(R"("model_type": "gpt2", "hidden_act": "silu")") == "pppppp");
  const std::string experts = R"("hidden_act": "silu", "num_experts": 8)";
  CHECK(parts_of(experts) == "eeeeee");
  CHECK(parts_of(R"("hidden_act": "silu", "num_local_experts": 0)") == "gggggg");
  CHECK(parts_of(experts + R"(, "decoder_sparse_step": 2, "mlp_only_layers": [3])") == "geggge");
  CHECK(parts_of(experts + R"(, "first_k_dense_replace": 2)") == "ggeeee");
  CHECK(parts_of(experts + R"(, "interleave_moe_layer_step": 3)") == "ggegge");
  CHECK(parts_of(experts + R"(, "expert_layer_period": 2, "expert_layer_offset": 1)") == "gegege");
  CHECK(parts_of(experts + R"(, "decoder_sparse_step": "2")") == "uuuuuu");
  CHECK(parts_of(experts + R"(, "first_k_dense_replace": [1])") == "uuuuuu");
  CHECK(parts_of(experts + R"(, "mlp_layer_types": [0, 1, 1, 0, 1, 1])") == "uuuuuu");
  CHECK(parts_of(experts + R"(, "mlp_only_layers": 3)") == "uuuuuu");
  CHECK(parts_of(experts + R"(, "mlp_only_layers": ["3"])") == "uuuuuu");
  CHECK(parts_of(R"("hidden_act": ["silu"])") == "uuuuuu");
  CHECK(parts_of(R"("hidden_act": "silu", "num_experts": "8")") == "uuuuuu");
  CHECK(parts_of(experts + R"(, "mlp_layer_types": ["dense", "sparse", "sparse", "dense", "sparse",
                 "sparse"])") == "geegee");
}

TEST_CASE("describe_feed_forward: Nemotron-H says it by letters or by names") {
  const std::string type = R"("model_type": "nemotron_h", "n_routed_experts": 8, )";
  CHECK(parts_of(type + R"("hybrid_override_pattern": "M-M*E*")") == "npnnen");
  CHECK(parts_of(type + R"("layers_block_type": ["linear_attention", "mlp", "linear_attention",
                 "full_attention", "moe", "full_attention"])") == "npnnen");
}

}  // namespace
}  // namespace fp8kv
