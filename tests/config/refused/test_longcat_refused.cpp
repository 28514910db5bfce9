// Values of config.json that LongCat Flash does not compute, or that runtimes read differently,
// refused by key.
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

std::string longcat_refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("longcat-flash", key, value);
}

}  // namespace

TEST_CASE("LongCat Flash: counts of layers") {
  CHECK(longcat_refusal("num_layers", "null") == "config.json: the key 'num_layers' is null");
  CHECK(longcat_refusal("num_hidden_layers", "2") ==
        "config.json: num_hidden_layers: is 2, expected 4, twice num_layers: transformers takes "
        "half of it for num_layers");
  const std::string twice = test::family_with("longcat-flash", "num_hidden_layers", "4");
  CHECK(parse_model_config(Json::parse(twice, "config.json")).n_layers() == 4);
}

TEST_CASE("LongCat Flash: switches that transformers does not read") {
  for (const char* key : {"mla_scale_q_lora", "mla_scale_kv_lora"}) {
    CHECK(longcat_refusal(key, "false") ==
          std::string("config.json: ") + key +
              ": is false, expected true: transformers multiplies the vectors all the same");
  }
  CHECK(longcat_refusal("zero_expert_type", R"("zero")") ==
        "config.json: zero_expert_type: is \"zero\", expected 'identity': no other expert without "
        "matrices of this architecture is supported");
  CHECK(longcat_refusal("attention_method", R"("MHA")").find("attention_method") !=
        std::string::npos);
  CHECK(longcat_refusal("router_bias", "true") ==
        "config.json: router_bias: is true: a bias of the router is not supported");
  CHECK(longcat_refusal("norm_topk_prob", "true").find("norm_topk_prob") != std::string::npos);
  CHECK(longcat_refusal("ngram_vocab_size_ratio", "78") ==
        "config.json: ngram_vocab_size_ratio: is 78: embeddings of n-grams are not supported");
}

TEST_CASE("LongCat Flash: sizes of heads and experts") {
  CHECK(longcat_refusal("qk_head_dim", "15") ==
        "config.json: qk_head_dim: is 15, expected 16, the sum of qk_nope_head_dim and "
        "qk_rope_head_dim");
  CHECK(longcat_refusal("head_dim", "8") ==
        "config.json: head_dim: is 8, expected 6, which is qk_rope_head_dim: transformers takes it "
        "for the angles");
  CHECK(longcat_refusal("head_dim", "null") ==
        "config.json: head_dim: is missing, which means 64, expected 6, which is qk_rope_head_dim: "
        "transformers takes it for the angles");
  CHECK(longcat_refusal("q_lora_rank", "null") == "config.json: the key 'q_lora_rank' is null");
  CHECK(longcat_refusal("zero_expert_num", "null") ==
        "config.json: the key 'zero_expert_num' is null");
  CHECK(longcat_refusal("zero_expert_num", "-1").find("zero_expert_num") != std::string::npos);
  CHECK(longcat_refusal("n_routed_experts", "0") ==
        "config.json: n_routed_experts: is 0, expected at least 2 experts");
  for (const auto& [key, own] : {std::pair{"moe_intermediate_size", "expert_ffn_hidden_size"},
                                 std::pair{"num_experts_per_tok", "moe_topk"},
                                 std::pair{"intermediate_size", "ffn_hidden_size"}}) {
    CAPTURE(key);
    const std::string refusal = longcat_refusal(key, "21");
    CHECK(refusal.find(key) != std::string::npos);
    CHECK(refusal.find(own) != std::string::npos);
  }
}

}  // namespace fp8kv
