// Values of config.json that Inkling does not compute, or that runtimes read differently, refused
// by key.
#include <string>

#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "config/parse_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

std::string refusal(const std::string& key, const std::string& value) {
  return test::refusal_of_family("inkling", key, value);
}

ModelConfig config_of(const std::string& golden, const std::string& key, const std::string& value) {
  return parse_model_config(Json::parse(test::family_with(golden, key, value), "config.json"));
}

}  // namespace

TEST_CASE("Inkling: lists of layers that contradict each other") {
  CHECK_NOTHROW(config_of("inkling", "local_layer_ids", "[0, 2]"));
  CHECK(refusal("local_layer_ids", "[0]") ==
        "config.json: layer_types[2]: is 'hybrid_sliding', contrary to local_layer_ids at layer 2: "
        "transformers goes by the one, and vLLM by the other");
  CHECK(refusal("local_layer_ids", "[4]").find("local_layer_ids[0]") != std::string::npos);
  CHECK_NOTHROW(config_of("inkling", "dense_mlp_idx", "1"));
  CHECK(refusal("dense_mlp_idx", "2") ==
        "config.json: mlp_layer_types[1]: is \"sparse\", contrary to dense_mlp_idx at layer 1: "
        "transformers goes by the one, and vLLM by the other");
  CHECK(refusal("layer_types", R"(["hybrid", "full_attention", "hybrid", "hybrid"])") ==
        "config.json: layer_types[1]: is 'full_attention', expected 'hybrid' or 'hybrid_sliding'");
  CHECK(refusal("layer_types", R"(["hybrid"])") ==
        "config.json: layer_types: is [\"hybrid\"], expected an array of 4 layer types");
}

TEST_CASE("Inkling: keys for which runtimes have other defaults must be there") {
  for (const char* key :
       {"swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "n_shared_experts",
        "route_scale", "logits_mup_width_multiplier", "moe_intermediate_size"}) {
    CAPTURE(key);
    CHECK(refusal(key, "null").find(key) != std::string::npos);
  }
}

TEST_CASE("Inkling: two names of a number must agree") {
  CHECK_NOTHROW(config_of("inkling", "sconv_kernel_size", "4"));
  CHECK(refusal("sconv_kernel_size", "3").find("sconv_kernel_size") != std::string::npos);
  CHECK(refusal("sliding_window", "9").find("sliding_window") != std::string::npos);
  CHECK(refusal("model_max_length", "65").find("model_max_length") != std::string::npos);
  CHECK(refusal("v_head_dim", "10").find("v_head_dim") != std::string::npos);
}

TEST_CASE("Inkling: what vLLM alone would compute") {
  CHECK_NOTHROW(config_of("inkling", "use_sconv", "true"));
  CHECK(refusal("use_sconv", "false") ==
        "config.json: use_sconv: is false, expected true, which transformers takes for it");
  CHECK(refusal("q_bias", "true").find("q_bias") != std::string::npos);
  CHECK(refusal("gate_activation", R"("softmax")").find("gate_activation") != std::string::npos);
  CHECK(refusal("shared_experts_size", "2") ==
        "config.json: shared_experts_size: is 2, expected 1");
  CHECK(refusal("padded_vocab_size", "80").find("padded_vocab_size") != std::string::npos);
  CHECK(refusal("final_logit_softcapping", "30").find("capping") != std::string::npos);
  CHECK(refusal("tie_word_embeddings", "true").find("tie_word_embeddings") != std::string::npos);
  CHECK(refusal("conv_kernel_size", "9").find("conv_kernel_size") != std::string::npos);
}

TEST_CASE("Inkling: only tokens without padding have logits") {
  const ModelConfig cut = config_of("inkling", "unpadded_vocab_size", "70");
  CHECK(cut.vocab_size == 70);
  CHECK(cut.stored_vocab == 77);
  const ModelConfig whole = config_of("inkling", "unpadded_vocab_size", "90");
  CHECK(whole.vocab_size == 77);
  CHECK(whole.stored_vocab == 0);
}

TEST_CASE("Inkling: layers with a window have heads of their own") {
  const ModelConfig config = config_of("inkling", "swa_head_dim", "10");
  CHECK(config.layer(0).mixing == Mixing::window);
  CHECK(config.layer(0).reach == 7);
  CHECK(config.layer(0).k_head_dim == 10);
  CHECK(config.layer(0).n_kv_heads == 3);
  CHECK(config.n_heads_of(0) == 6);
  CHECK(config.distance_extent(0) == 7);
  CHECK(config.layer(1).mixing == Mixing::full);
  CHECK(config.layer(1).k_head_dim == 12);
  CHECK(config.n_heads_of(1) == 4);
  CHECK(config.distance_extent(1) == 16);
  // 3 tokens of K and V of 3 heads, and of two outputs of 32 elements, in 16 bits.
  CHECK(config.layer(0).state_bytes == 3 * (2 * 3 * 10 + 2 * 32) * 2);
}

TEST_CASE("Inkling: the second Inkling is another model") {
  std::string text = test::family_with("inkling", "model_type", R"("inkling2_text")");
  const std::string name = "InklingForCausalLM";
  text.replace(text.find(name), name.size(), "Inkling2ForCausalLM");
  CHECK(test::error_of_config(text).find("'Inkling2ForCausalLM' is not supported") !=
        std::string::npos);
}

}  // namespace fp8kv
