// Configs of models with Mamba-2 layers.
#include <limits>

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::error_of_config;
using test::parse_config;

// The config.json of a family's case with one member set to a JSON value.
std::string family_with(const char* name, const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(test::family_golden(name).at("config"));
  return json_with_member(text.text(), key, value);
}

RecurrenceConfig state_with(const char* name, const std::string& key, const std::string& value) {
  return parse_config(family_with(name, key, value)).recurrence.value();
}

TEST_CASE("mamba config: limits of time steps, in every spelling of one that is none") {
  const RecurrenceConfig limited = state_with("granite4", "time_step_limit", "[0.25, 2]");
  CHECK(limited.least_step == 0.25);
  CHECK(limited.most_step == 2.0);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (const char* most : {"Infinity", R"({"__float__": "Infinity"})"}) {
    const auto state = state_with("granite4", "time_step_limit", cat("[0.5, ", most, "]"));
    CHECK(state.least_step == 0.5);
    CHECK(state.most_step == kNone);
    CHECK(state_with("nemotron-h", "time_step_limit", cat("[0.0, ", most, "]")).most_step == kNone);
  }
}

// For null, transformers uses no bias; for a missing key it uses one.
TEST_CASE("mamba config: a bias of the convolution that is null is refused") {
  for (const char* golden : {"bamba", "falcon-h1", "granite4"}) {
    CAPTURE(golden);
    CHECK(error_of_config(family_with(golden, "mamba_conv_bias", "null")) ==
          "config.json: the key 'mamba_conv_bias' is null, expected true or false");
  }
}

TEST_CASE("mamba config: a least time step of Nemotron-H that runtimes differ in is refused") {
  CHECK(error_of_config(family_with("nemotron-h", "time_step_min", "0.1")) ==
        "config.json: time_step_min: is 0.1, expected 0.001 or less: runtimes differ in whether "
        "they limit time steps by it");
  CHECK(parse_config(family_with("nemotron-h", "time_step_min", "0.001")).unknown_keys.empty());
}

TEST_CASE("mamba config: a model whose layers all have attention needs none of it") {
  const std::string config = family_with("granite4-attention", "mamba_n_groups", "null");
  CHECK_FALSE(parse_config(config).recurrence.has_value());
}

TEST_CASE("mamba config: Falcon-H1 says the width of all heads, or how many times the model's") {
  const std::string width = family_with("falcon-h1", "mamba_d_head", "\"auto\"");
  CHECK(parse_config(width).recurrence->v_dim == 8);
  const std::string times = json_with_member(width, "mamba_d_ssm", "null");
  CHECK(parse_config(json_with_member(times, "mamba_n_heads", "4")).recurrence->v_dim == 16);
  // transformers uses 1024 for a missing key, whatever the other numbers are.
  CHECK(error_of_config(json_without_member(width, "mamba_d_ssm")) ==
        "config.json: the key 'mamba_d_ssm' is missing");
}

TEST_CASE("mamba config: what Falcon-H1 says of norms and multipliers, and what it has without") {
  const auto norm = [](const char* rms, const char* before) {
    constexpr const char* kKey = "mamba_norm_before_gate";
    const std::string config = family_with("falcon-h1", "mamba_rms_norm", rms);
    return parse_config(*before == '\0' ? json_without_member(config, kKey)
                                        : json_with_member(config, kKey, before))
        .recurrence->norm;
  };
  CHECK(norm("false", "true") == StateNorm::none);
  CHECK(norm("null", "false") == StateNorm::none);
  CHECK(norm("true", "false") == StateNorm::groups_after_gate);
  CHECK(norm("true", "") == StateNorm::groups);
  const RecurrenceConfig plain = state_with("falcon-h1-in-bias", "ssm_in_multiplier", "null");
  CHECK(plain.multipliers == StateMultipliers{.out = 0.6});
  CHECK(plain.bias);
  CHECK_FALSE(plain.out_bias);
}

TEST_CASE("mamba config: what is not computed of Mamba-2 is refused by name") {
  const auto refused = [](const char* name, const char* key, const char* value) {
    return error_of_config(family_with(name, key, value));
  };
  CHECK(refused("granite4", "mamba_n_groups", "3") ==
        "config.json: mamba_n_heads: is 8, expected a multiple of the 3 groups of mamba_n_groups");
  CHECK(refused("granite4", "mamba_d_head", "7") ==
        "config.json: mamba_expand: makes the heads 64 wide together, but 8 heads of 7 are 56");
  CHECK(refused("granite4", "mamba_d_head", "\"wide\"") ==
        "config.json: mamba_d_head: is \"wide\", expected a number or \"auto\"");
  CHECK(refused("granite4", "position_embedding_type", "\"alibi\"") ==
        "config.json: position_embedding_type: is \"alibi\", expected \"rope\" or \"nope\"");
  CHECK(refused("granite4", "normalization_function", "\"layernorm\"") ==
        "config.json: normalization_function: is \"layernorm\", expected 'rmsnorm': nothing else "
        "is supported in this architecture");
  CHECK(refused("granite4", "time_step_limit", "[0.5, 0.1]") ==
        "config.json: time_step_limit: is [0.5, 0.1], expected the least, 0 or more, and then the "
        "most");
  CHECK(refused("granite4", "time_step_limit", "[0.5]") ==
        "config.json: time_step_limit: is [0.5], expected an array of 2 numbers");
  CHECK(refused("granite4", "layer_types", R"(["mamba", "mamba", "mamba"])") ==
        "config.json: layer_types: gives no layer attention, so that there is no KV cache");
  CHECK(error_of_config(json_without_member(family_with("granite4", "num_local_experts", "0"),
                                            "layer_types")) ==
        "config.json: gives no layer attention, so that there is no KV cache");
  CHECK(refused("bamba", "attn_rotary_emb", "8") ==
        "config.json: attn_rotary_emb: is 8, expected 4, the elements of a head that are rotated");
  CHECK(refused("bamba", "partial_rotary_factor", "0.25") ==
        "config.json: partial_rotary_factor: is 0.25, expected 0.5");
  CHECK(refused("falcon-h1", "mamba_d_ssm", "40") ==
        "config.json: mamba_d_ssm: makes the heads 40 wide together, but 6 heads of 8 are 48");
  CHECK(refused("falcon-h1", "ssm_multipliers", "[1.0, 2.0]") ==
        "config.json: ssm_multipliers: is [1.0, 2.0], expected an array of 5 numbers");
  CHECK(refused("falcon-h1", "mlp_multipliers", "[1.0, 0.0]") ==
        "config.json: mlp_multipliers[1]: is 0.0, expected a positive number");
  CHECK(refused("falcon-h1", "attn_layer_indices", "[1]") ==
        "config.json: attn_layer_indices: is [1], which makes the mixing of layer 0 'recurrent', "
        "expected 'full' in FalconH1ForCausalLM");
  CHECK(refused("falcon-h1", "mamba_use_mlp", "false") ==
        "config.json: mamba_use_mlp: is false, which changes what other models compute, and is "
        "not read for FalconH1ForCausalLM");
  CHECK(refused("nemotron-h", "time_step_limit", "[0.001, Infinity]") ==
        "config.json: time_step_limit: is [0.001, Infinity], expected [0.0, Infinity]: a limit of "
        "time steps is not supported in this architecture");
  CHECK(refused("nemotron-h", "attention_bias", "true") ==
        "config.json: attention_bias: is true: a bias of Q, K, V and O is not supported");
  CHECK(refused("nemotron-h", "mlp_bias", "true") ==
        "config.json: mlp_bias: is true: a bias beside experts is not supported");
  CHECK(refused("nemotron-h", "sliding_window", "8") ==
        "config.json: sliding_window: is 8: is not supported in this architecture");
  CHECK(refused("nemotron-h", "mamba_hidden_act", "\"gelu\"") ==
        "config.json: mamba_hidden_act: is \"gelu\", expected 'silu': nothing else is supported "
        "in this architecture");
  CHECK(refused("nemotron-h", "attention_head_dim", "8") ==
        "config.json: attention_head_dim: is 8, but heads have 12 elements by head_dim");
  CHECK(refused("nemotron-h", "n_shared_experts", "2") ==
        "config.json: n_shared_experts: is 2, expected 1: another number of shared experts is not "
        "supported");
  CHECK(refused("nemotron-h", "layers_block_type",
                R"(["mamba", "mlp", "attention", "mamba", "moe"])") ==
        "config.json: layers_block_type: stands for 'M-*ME', but config.json: "
        "hybrid_override_pattern is \"M-M*E\"");
}

}  // namespace
}  // namespace fp8kv
