// Values of config.json that Ling 2 and 2.5 do not compute, or that runtimes read differently,
// refused by key.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "core/model/recurrence.h"
#include "json/json.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

using test::refusal_of_family;

const char* const kLings[] = {"ling2", "ling2.5"};

ModelConfig ling_with(const std::string& golden, const char* key, const char* value) {
  return parse_model_config(Json::parse(test::family_with(golden, key, value), "config.json"));
}

}  // namespace

TEST_CASE("Ling 2 and 2.5: routers that the published code does not have") {
  for (const char* golden : kLings) {
    CAPTURE(golden);
    const auto refused = [&](const char* key, const char* value) {
      return refusal_of_family(golden, key, value);
    };
    CHECK(
        refused("score_function", "\"softmax\"") ==
        "config.json: score_function: is \"softmax\", expected 'sigmoid': no other router of this "
        "architecture is supported");
    CHECK(refused("topk_method", "\"greedy\"") ==
          "config.json: topk_method: is \"greedy\", expected 'noaux_tc': no other router of this "
          "architecture is supported");
    CHECK(refused("moe_router_enable_expert_bias", "false") ==
          "config.json: moe_router_enable_expert_bias: is false, expected true: the published code "
          "adds the bias of the choice whatever this says");
    CHECK(refused("norm_topk_prob", "false") ==
          "config.json: norm_topk_prob: is false, expected true: the published code divides the "
          "weights of experts by their sum whatever this says");
    CHECK(refused("num_experts_per_tok", "1") ==
          "config.json: num_experts_per_tok: is 1, expected 2 or more: runtimes differ in whether "
          "they divide the weight of a single expert by itself");
    CHECK(refused("moe_shared_expert_intermediate_size", "48") ==
          "config.json: moe_shared_expert_intermediate_size: is 48, expected 24: the published "
          "code makes a shared expert as wide as the others");
    for (const char* key :
         {"n_group", "topk_group", "num_shared_experts", "first_k_dense_replace"}) {
      CHECK(refused(key, "null") == std::string("config.json: the key '") + key + "' is null");
    }
  }
}

TEST_CASE("Ling 2: keys that runtimes read differently") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("ling2", key, value);
  };
  for (const char* key : {"head_dim", "num_key_value_heads", "score_function"}) {
    CHECK(refused(key, "null") == std::string("config.json: the key '") + key + "' is null");
  }
  CHECK(refused("use_bias", "true") ==
        "config.json: use_bias: is true: a bias of each product is not supported");
  CHECK(refused("norm_head", "true") ==
        "config.json: norm_head: is true: a normalised lm_head is not supported");
  CHECK(refused("use_rmsnorm", "false") ==
        "config.json: use_rmsnorm: is false, expected true: vLLM then norms Q and K by a layer "
        "norm, and the published code by their root mean square");
  CHECK(refused("rotary_dim", "8") ==
        "config.json: rotary_dim: is 8, expected 6, which is partial_rotary_factor of head_dim: "
        "runtimes differ in which they go by");
  CHECK(refusal_of_family("ling2-rotary-dim", "rotary_dim", "5") ==
        "config.json: rotary_dim: is 5, expected an even number");
  CHECK(ling_with("ling2", "rotary_dim", "6").ropes[0].rotary_dim == 6);
  CHECK(ling_with("ling2-rotary-dim", "rotary_dim", "10").ropes[0].rotary_dim == 0);
}

TEST_CASE("Ling 2.5: what runtimes compute whatever the config says") {
  const auto refused = [](const char* key, const char* value) {
    return refusal_of_family("ling2.5", key, value);
  };
  CHECK(refused("tie_word_embeddings", "true") ==
        "config.json: tie_word_embeddings: is true: an embedding in place of lm_head is not "
        "supported");
  for (const char* key : {"linear_silu", "use_linear_silu"}) {
    CHECK(refused(key, "true") ==
          std::string("config.json: ") + key + ": is true: SiLU of Q, K and V is not supported");
  }
  for (const char* key : {"attention_bias", "use_bias", "use_qkv_bias"}) {
    CHECK(refused(key, "true") ==
          std::string("config.json: ") + key + ": is true: biases of products is not supported");
  }
  for (const char* key : {"linear_rope", "rope_interleave"}) {
    CHECK(refused(key, "false") ==
          std::string("config.json: ") + key + ": is false, expected true in this architecture");
  }
  CHECK(refused("partial_rotary_factor", "0.25") ==
        "config.json: partial_rotary_factor: is 0.25, which times head_dim is not 6: runtimes "
        "rotate qk_rope_head_dim elements whatever this says");
  CHECK(refusal_of_family("ling2.5-behind", "head_dim", "16") ==
        "config.json: qk_rope_head_dim: is 6, expected half of head_dim, which is 16: so much of a "
        "head rotates without partial_rotary_factor");
  CHECK(refused("layer_types",
                R"(["full_attention", "full_attention", "linear_attention", "full_attention"])") ==
        "config.json: layer_group_size: is 2, contrary to layer_types at layer 0: runtimes differ "
        "in which they go by");
  CHECK(refused("layer_group_size", "null") == "config.json: the key 'layer_group_size' is null");
}

TEST_CASE("Ling 2.5: sizes of states for which the decays and the norm are known") {
  CHECK(refusal_of_family("ling2.5", "num_hidden_layers", "1") ==
        "config.json: num_hidden_layers: is 1, expected 2 or more: the decays of a single layer "
        "are not defined");
  CHECK(refusal_of_family("ling2.5-behind", "num_attention_heads", "6") ==
        "config.json: num_attention_heads: is 6, expected a power of 2: runtimes differ in the "
        "decays of other numbers of heads");
  CHECK(refusal_of_family("ling2.5", "group_norm_size", "5") ==
        "config.json: group_norm_size: the output of a layer has 48 elements, which do not make 5 "
        "groups (group_norm_size)");
  CHECK(refusal_of_family("ling2.5", "head_dim", "null") ==
        "config.json: the key 'head_dim' is null");
}

TEST_CASE("Ling 2.5: layers behind the last whole group have attention") {
  const ModelConfig config = ling_with("ling2.5-behind", "num_nextn_predict_layers", "0");
  for (int64_t i = 0; i < config.n_layers(); ++i) CHECK(config.attends(i) == (i >= 2));
  const ModelDescription model = describe_model(test::family_golden("ling2.5").at("config"));
  CHECK(model.layer(0).state_bytes == 4 * 12 * 12 * 4);
  CHECK(model.layer(1).state_bytes == 0);
}

TEST_CASE("Ling 2.5: slopes count layers from the second one") {
  RecurrenceConfig state;
  state.v_heads = 8;
  state.decay_layers = {.first = 1, .divisor_eps = 0.0};
  CHECK(decay_slope(state, 0, 0, 5) == doctest::Approx(0.5 * (1.25 + 1e-5)).epsilon(1e-12));
  CHECK(decay_slope(state, 0, 1, 5) == doctest::Approx(0.5 * (1 + 1e-5)).epsilon(1e-12));
  CHECK(decay_slope(state, 2, 4, 5) == doctest::Approx(0.125 * (0.25 + 1e-5)).epsilon(1e-12));
}

}  // namespace fp8kv
