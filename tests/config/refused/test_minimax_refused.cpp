// Values of config.json that MiniMax Text 01 and M1 do not compute, or that runtimes read
// differently, refused by key.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "core/model/recurrence.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

std::string minimax_refusal(const std::string& golden, const std::string& key,
                            const std::string& value) {
  return test::refusal_of_family(golden, key, value);
}

ModelConfig minimax_with(const std::string& golden, const std::string& key,
                         const std::string& value) {
  return parse_model_config(Json::parse(test::family_with(golden, key, value), "config.json"));
}

}  // namespace

TEST_CASE("MiniMax Text 01: keys without which runtimes differ must be there") {
  for (const char* key : {"attn_type_list", "postnorm", "num_key_value_heads", "num_local_experts",
                          "num_experts_per_tok"}) {
    CAPTURE(key);
    CHECK(minimax_refusal("minimax-text-01", key, "null").find(key) != std::string::npos);
  }
}

TEST_CASE("MiniMax Text 01: what published code may do and this program does not") {
  const auto refusal = [](const char* key, const char* value) {
    return minimax_refusal("minimax-text-01", key, value);
  };
  CHECK(refusal("postnorm", "false") ==
        "config.json: postnorm: is false: a stream that goes on without its norm is not supported");
  CHECK(refusal("shared_intermediate_size", "24") ==
        "config.json: shared_intermediate_size: is 24: a shared expert is not supported here");
  CHECK(refusal("rotary_dim", "7") == "config.json: rotary_dim: is 7, expected an even number");
  CHECK(refusal("rotary_dim", "18") == "config.json: rotary_dim: is 18, expected 2 to 16");
  CHECK(refusal("sliding_window", "8") ==
        "config.json: sliding_window: is 8: a sliding window is not supported in this "
        "architecture");
  CHECK(refusal("num_attention_heads", "6") ==
        "config.json: num_attention_heads: is 6, expected a power of 2: runtimes differ in the "
        "decays of other numbers of heads");
  CHECK(refusal("head_dim", "258") ==
        "config.json: head_dim: heads have 258 elements, expected 256 at most");
}

TEST_CASE("MiniMax, as transformers saves it: published keys must not say anything else") {
  const auto refusal = [](const char* key, const char* value) {
    return minimax_refusal("minimax-01", key, value);
  };
  CHECK(refusal("rotary_dim", "8") ==
        "config.json: rotary_dim: is 8, expected 12: transformers rotates whole heads");
  CHECK(refusal("attn_type_list", "[1, 1, 0, 1]") ==
        "config.json: layer_types: layer 0 has lightning attention by layer_types, and another key "
        "says otherwise: runtimes differ in which they go by");
  CHECK(refusal("layernorm_mlp_alpha", "3.5") ==
        "config.json: layernorm_mlp_alpha: is 3.5, expected 1.5, which is mlp_alpha_factor: "
        "runtimes differ in which they go by");
  CHECK(refusal("postnorm", "false").find("postnorm") != std::string::npos);
  CHECK(refusal("mlp_beta_factor", "0").find("mlp_beta_factor") != std::string::npos);
  const ModelConfig same = minimax_with("minimax-01", "layernorm_mlp_alpha", "1.5");
  CHECK(same.block.stream_factors.feed_forward == 1.5);
  CHECK(
      minimax_refusal("minimax-01-seven", "attn_type_list", "[1, 1, 1]") ==
      "config.json: layer 1 has lightning attention by layer_types, which is missing, and another "
      "key says otherwise: runtimes differ in which they go by");
  CHECK(minimax_with("minimax-01-seven", "attn_type_list", "[1, 0, 1]").n_layers() == 3);
}

TEST_CASE("MiniMax, as transformers saves it: every second layer has attention by default") {
  const ModelConfig config = minimax_with("minimax-01", "layer_types", "null");
  for (int64_t i = 0; i < config.n_layers(); ++i) CHECK(config.attends(i) == (i % 2 == 0));
}

TEST_CASE("MiniMax: a state is a square for each head of attention, without a convolution") {
  const ModelDescription model = describe_model(test::family_golden("minimax-01").at("config"));
  CHECK(model.layer(0).state_bytes == 4 * 12 * 12 * 4);
  CHECK(model.layer(1).state_bytes == 0);
  CHECK(model.layer(1).n_kv_heads == 2);
}

TEST_CASE("MiniMax: slopes halve from head to head, and fall with the number of the layer") {
  RecurrenceConfig state;
  state.v_heads = 8;
  CHECK(decay_slope(state, 0, 0, 5) == doctest::Approx(0.5 * (1 + 1e-5)));
  CHECK(decay_slope(state, 2, 0, 5) == doctest::Approx(0.125 * (1 + 1e-5)));
  CHECK(decay_slope(state, 0, 2, 5) == doctest::Approx(0.25).epsilon(1e-4));
  CHECK(decay_slope(state, 0, 4, 5) == doctest::Approx(0.5 * (1e-5 + 1e-5 / 4)).epsilon(1e-3));
  CHECK(decay_slope(state, 0, 0, 1) == doctest::Approx(0.5 * (1 + 1e-5)));
}

}  // namespace fp8kv
