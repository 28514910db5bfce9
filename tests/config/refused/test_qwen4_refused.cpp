// Values of config.json that Qwen 4 Exp does not compute, or that runtimes read differently,
// refused by key. Tensors that contradict the config are refused too.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/models/family_model.h"

namespace fp8kv {
namespace {

std::string qwen4_refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("qwen4-exp", key, value);
}

ModelConfig qwen4_with(const std::string& key, const std::string& value) {
  return parse_model_config(Json::parse(test::family_with("qwen4-exp", key, value), "config.json"));
}

}  // namespace

TEST_CASE("Qwen 4 Exp: keys of the indexer") {
  for (const char* key : {"indexer_n_heads", "indexer_kv_heads", "indexer_head_dim",
                          "indexer_budget", "indexer_compress_ratio"}) {
    CAPTURE(key);
    CHECK(qwen4_refusal(key, "null").find(key) != std::string::npos);
  }
  CHECK(qwen4_refusal("indexer_kv_heads", "2") ==
        "config.json: indexer_kv_heads: is 2, expected 1");
  CHECK(qwen4_refusal("indexer_budget", "13") ==
        "config.json: indexer_budget: is 13, expected a multiple of indexer_compress_ratio, which "
        "is 4");
  CHECK(qwen4_refusal("indexer_head_dim", "2") ==
        "config.json: indexer_head_dim: is 2, expected an even number from the 4 elements on that "
        "rotate");
  CHECK(qwen4_refusal("indexer_compress_ratio", "1").find("indexer_compress_ratio") !=
        std::string::npos);
}

TEST_CASE("Qwen 4 Exp: keys of streams, n-grams and gates") {
  CHECK(qwen4_refusal("hc_count", "9").find("hc_count") != std::string::npos);
  CHECK(qwen4_refusal("output_gate_type", R"("tanh")") ==
        "config.json: output_gate_type: is \"tanh\", expected 'silu' or 'sigmoid'");
  CHECK(qwen4_refusal("ple_layer_ids", "[2]") ==
        "config.json: ple_layer_ids: names layer 2, expected layers of linear attention alone");
  CHECK(qwen4_refusal("ple_layer_ids", "[5]").find("ple_layer_ids[0]") != std::string::npos);
  CHECK(qwen4_refusal("ple_embed_dim", "13") ==
        "config.json: ple_embed_dim is 13, expected a multiple of the 4 tables of ngram_size and "
        "heads_per_ngram");
  CHECK(qwen4_refusal("split_ngram_parts", "7") ==
        "config.json: split_ngram_parts is 7, expected a divisor of the 240 rows of layer 2");
  CHECK(qwen4_refusal("heads_per_ngram", "2000000000").find(" tables of ngram_size and ") !=
        std::string::npos);
  CHECK(qwen4_refusal("eos_token_id", "77").find("eos_token_id") != std::string::npos);
  CHECK(qwen4_refusal("eos_token_id", "null").find("eos_token_id") != std::string::npos);
  CHECK(qwen4_refusal("num_experts", "null").find("num_experts") != std::string::npos);
}

TEST_CASE("Qwen 4 Exp: an indexer that leaves out no token is not computed") {
  CHECK(qwen4_with("indexer_budget", "12").indexer.has_value());
  CHECK(qwen4_with("indexer_budget", "60").indexer.has_value());  // 63 of 64 tokens
  CHECK_FALSE(qwen4_with("indexer_budget", "64").indexer.has_value());
}

TEST_CASE("Qwen 4 Exp: convolutions over n-grams are a part of the state") {
  const auto bytes = [](const char* ids) {
    const Json config =
        Json::parse(test::family_with("qwen4-exp", "ple_layer_ids", ids), "config.json");
    return describe_model(config).layer(2).state_bytes;
  };
  // 9 tokens of 4 streams of 32 elements, in 16 bits.
  CHECK(bytes("[3]") == bytes("[]") + 9 * 4 * 32 * 2);
  CHECK(bytes("[1]") == bytes("[]"));
}

}  // namespace fp8kv
