// Values of config.json that DeepSeek V4 does not compute, or that runtimes read differently,
// refused by key; and which layers pool what.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

std::string v4_refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("deepseek-v4", key, value);
}

std::string published_refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("deepseek-v4-published", key, value);
}

bool names(const std::string& message, const std::string& key) {
  return message.find(key) != std::string::npos;
}

}  // namespace

TEST_CASE("DeepSeek V4: keys that must be there, or have one value") {
  for (const char* key : {"q_lora_rank", "o_groups", "o_lora_rank", "n_shared_experts", "head_dim",
                          "routed_scaling_factor", "swiglu_limit", "index_head_dim", "index_topk",
                          "index_n_heads", "n_routed_experts", "moe_intermediate_size"}) {
    CAPTURE(key);
    CHECK(names(v4_refusal(key, "null"), key));
  }
  CHECK(v4_refusal("num_key_value_heads", "2") ==
        "config.json: num_key_value_heads: is 2, expected 1: all heads read one row");
  CHECK(v4_refusal("o_groups", "3") ==
        "config.json: o_groups: is 3, expected a number that divides the 4 attention heads");
  CHECK(v4_refusal("n_shared_experts", "2") == "config.json: n_shared_experts: is 2, expected 1");
  CHECK(names(v4_refusal("norm_topk_prob", "false"), "norm_topk_prob: is false"));
  CHECK(names(v4_refusal("scoring_func", R"("sigmoid")"), "scoring_func"));
  CHECK(names(v4_refusal("attention_bias", "true"), "attention_bias"));
  CHECK(names(v4_refusal("mlp_bias", "true"), "mlp_bias"));
  CHECK(names(v4_refusal("hc_mult", "9"), "hc_mult"));
  CHECK(names(v4_refusal("n_routed_experts", "0"), "n_routed_experts"));
  CHECK(v4_refusal("hybrid_override_pattern", R"("*-**")") ==
        "config.json: n_routed_experts: is 6, but layer 0 has no experts, expected some in every "
        "layer");
  CHECK(names(v4_refusal("hc_sinkhorn_iters", "0"), "hc_sinkhorn_iters"));
  CHECK(names(v4_refusal("index_head_dim", "6"), "index_head_dim: is 6, expected an even number"));
}

TEST_CASE("DeepSeek V4: keys by which transformers and vLLM differ must agree") {
  CHECK(names(published_refusal("layer_types", R"(["compressed_sparse_attention",
                                                  "sliding_attention", "sliding_attention"])"),
              "contrary to compress_ratios at layer 1"));
  CHECK(names(v4_refusal("num_hash_layers", "2"), "contrary to num_hash_layers, which is 2"));
  CHECK(names(v4_refusal("qk_rope_head_dim", "4"), "contrary to qk_rope_head_dim, which is 4"));
  CHECK(names(v4_refusal("intermediate_size", "25"), "moe_intermediate_size"));
  CHECK(names(v4_refusal("rope_theta", "500.0"), "rope_theta"));
  CHECK(names(published_refusal("compress_rate_csa", "8"), "contrary to 4 in compress_ratios"));
  CHECK(names(published_refusal("compress_ratios", "[4, 8, 0]"), "expected 0, 4 or 128"));
  CHECK(names(published_refusal("compress_ratios", "[4]"), "expected an array of 3"));
  CHECK(names(published_refusal("num_hash_layers", "null"), "num_hash_layers"));
}

TEST_CASE("DeepSeek V4: types of layers") {
  CHECK(names(v4_refusal("layer_types", R"(["full_attention", "full_attention", "full_attention",
                                           "full_attention"])"),
              "layer_types[0]"));
  CHECK(names(v4_refusal("mlp_layer_types", R"(["moe", "hash_moe", "moe", "moe"])"),
              "behind a layer of another type"));
  CHECK(names(v4_refusal("mlp_layer_types", R"(["moe", "dense", "moe", "moe"])"),
              "expected 'hash_moe' or 'moe'"));
  const Json config = Json::parse(test::family_with("deepseek-v4-plain", "pad_token_id", "0"), "c");
  const ModelDescription model = describe_model(config);
  // Without types, the first two layers pool by themselves, and then every second does.
  const int64_t pools[] = {9, 9, 9, 2, 9};
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    CAPTURE(i);
    CHECK(model.layer(i).pool == pools[i]);
    CHECK(model.layer(i).pool_overlaps == (i == 3));
    CHECK(model.layer(i).one_row);
    CHECK(model.window(i) == 11);
  }
}

TEST_CASE("DeepSeek V4: an indexer that leaves out no pool is not computed") {
  const auto with = [](const char* top_k) {
    return parse_model_config(
        Json::parse(test::family_with("deepseek-v4", "index_topk", top_k), "config.json"));
  };
  CHECK(with("14").indexer.has_value());  // 59 of 64 tokens
  CHECK_FALSE(with("16").indexer.has_value());
}

}  // namespace fp8kv
