#include <doctest/doctest.h>

#include "config/describe/describe_model.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

Json parsed(const std::string& text) {
  return Json::parse(text, "config.json");
}

}  // namespace

TEST_CASE("describe_model: a model that cannot be computed is described") {
  const auto shape = [](const char* text) {
    return describe_model(Json::parse(text, "config.json"));
  };
  const ModelDescription qwen3 =
      shape(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
      "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
      "quantization_config": {"quant_method": "fp8"}})");
  CHECK(qwen3.architecture == "Qwen3ForCausalLM");
  CHECK(qwen3.model_type == "qwen3");
  CHECK(qwen3.n_layers() == 28);
  CHECK(qwen3.n_heads == 16);
  CHECK(qwen3.n_kv_heads() == 8);
  CHECK(qwen3.head_dim() == 128);
  CHECK(qwen3.max_seq_len == 40960);

  const ModelDescription gpt2 = shape(R"({"model_type": "gpt2", "n_layer": 12, "n_head": 12,
                                     "n_embd": 768, "n_positions": 1024})");
  CHECK(gpt2.architecture == "");
  CHECK(gpt2.n_layers() == 12);
  CHECK(gpt2.n_kv_heads() == 12);
  CHECK(gpt2.head_dim() == 64);

  const ModelDescription wrapped = shape(R"({"model_type": "gemma3", "text_config": {
      "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4,
      "head_dim": 256}})");
  CHECK(wrapped.model_type == "gemma3");
  CHECK(wrapped.n_layers() == 34);
  CHECK(wrapped.head_dim() == 256);
  CHECK(wrapped.dim == 0);
}

TEST_CASE("describe_model: a Falcon that does not say its context has that of its family") {
  const std::string without = R"({"model_type": "falcon", "num_hidden_layers": 2,
      "num_attention_heads": 4, "hidden_size": 64, "multi_query": true)";
  CHECK(describe_model(parsed(without + "}")).max_seq_len == 2048);
  CHECK(describe_model(parsed(without + R"(, "max_position_embeddings": 512})")).max_seq_len ==
        512);
}

TEST_CASE("describe_model: a latent is cached once, for all heads, and V is a part of K") {
  const ModelDescription model = describe_model(parsed(R"({
      "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
      "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
      "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "hidden_act": "silu",
      "n_routed_experts": 256, "first_k_dense_replace": 3})"));
  const LayerDescription& layer = model.layer(0);
  CHECK(layer.n_kv_heads == 1);
  CHECK(layer.k_head_dim == 576);
  CHECK(layer.v_head_dim == 512);
  CHECK(layer.v_in_k);
  CHECK(layer.own_k_dim() == 64);
  CHECK(kv_bytes_per_token(model, DType::f8_e4m3) == 61 * 576);
  CHECK(kv_bytes_per_token(model, DType::bf16) == 2 * 61 * 576);
  CHECK(model.layer(2).feed_forward == FeedForward::gated);
  CHECK(model.layer(3).feed_forward == FeedForward::experts);
}

TEST_CASE("describe_model: a LongCat Flash has two layers with a cache for each of its own") {
  // Published configs have no model_type.
  const ModelDescription model = describe_model(parsed(R"({
      "architectures": ["LongcatFlashForCausalLM"], "num_layers": 28, "hidden_size": 6144,
      "num_attention_heads": 64, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
      "n_routed_experts": 512})"));
  CHECK(model.model_type == "longcat_flash");
  CHECK(model.n_layers() == 56);
  CHECK(kv_bytes_per_token(model, DType::f8_e4m3) == 56 * 576);
  CHECK(model.layer(0).feed_forward == FeedForward::experts);
  CHECK(model.layer(1).feed_forward == FeedForward::gated);
}

TEST_CASE("describe_model: what cannot be told is an error") {
  const auto refused = [](const char* text) {
    return test::error_of([&] { describe_model(Json::parse(text, "config.json")); });
  };
  CHECK(refused("{}") == "config.json: the key 'num_hidden_layers' is missing");
  CHECK(refused(R"({"num_hidden_layers": 2, "num_attention_heads": 4})") ==
        "config.json: the key 'hidden_size' is missing");
  CHECK(refused(R"({"num_hidden_layers": 2, "kv_lora_rank": 512, "model_type": "deepseek_v9"})") ==
        "config.json: kv_lora_rank: attention through a latent vector (MLA) is not known of "
        "model_type 'deepseek_v9', expected one of axk1, bailing_hybrid, deepseek_v2, "
        "deepseek_v3, deepseek_v32, kimi_k2, kimi_linear, glm4_moe_lite, glm5_next_text, "
        "glm_moe_dsa, hy_v4, hy_v4_vl_text, longcat_flash, minicpm3, mistral4, sarvam_mla and "
        "youtu");
  CHECK(refused(R"({"num_hidden_layers": 2, "kv_lora_rank": 512, "index_topk": 2048,
                    "model_type": "deepseek_v3"})") ==
        "config.json: index_topk: is 2048: a sparse indexer, which chooses what each token sees, "
        "is not known of model_type 'deepseek_v3', expected 'deepseek_v32', 'glm_moe_dsa', "
        "'hy_v4' or 'minimax_m3_vl_text'");
}

TEST_CASE("describe_model: a wrapped model is described as it is by itself") {
  const std::string inner = R"({"model_type": "x", "n_layer": 3, "n_head": 4, "n_embd": 64,
                                "sliding_window": 8})";
  const ModelDescription plain = describe_model(parsed(inner));
  for (const char* form :
       {R"({"text_config": @})", R"({"language_config": @})", R"({"llm_config": @})",
        R"({"thinker_config": {"audio_config": {}, "text_config": @}})",
        R"({"vision_config": {"num_hidden_layers": 27}, "text_config": @})"}) {
    std::string text = form;
    text.replace(text.find('@'), 1, inner);
    CAPTURE(text);
    const ModelDescription wrapped = describe_model(parsed(text));
    CHECK(wrapped.layers == plain.layers);
    CHECK(wrapped.n_heads == 4);
    CHECK(wrapped.dim == 64);
  }
  CHECK(plain.window(2) == 8);
}

}  // namespace fp8kv
