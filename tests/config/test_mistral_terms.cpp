#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/parse_model_config.h"
#include "config/values/mistral_terms.h"
#include "support/expect_error.h"
#include "support/says.h"

namespace fp8kv {
namespace {

using test::error_of;
using test::help_of;
using test::says;

// Sizes of a published Mistral 7B.
constexpr const char* kDense = R"({"dim": 4096, "n_layers": 32, "head_dim": 128,
  "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "norm_eps": 1e-05, "vocab_size": 32768,
  "rope_theta": 1000000.0})";
// Like Mistral Large 3.
constexpr const char* kLatent = R"({"dim": 7168, "n_layers": 61, "head_dim": 192,
  "hidden_dim": 16384, "n_heads": 128, "n_kv_heads": 128, "norm_eps": 1e-06, "vocab_size": 131072,
  "rope_theta": 10000.0, "max_position_embeddings": 294912, "q_lora_rank": 1536,
  "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
  "tied_embeddings": false,
  "yarn": {"original_max_position_embeddings": 8192, "factor": 36, "apply_scale": false,
           "beta": 32, "alpha": 1},
  "llama_4_scaling": {"original_max_position_embeddings": 8192, "beta": 0.1},
  "moe": {"expert_parallel": 1, "expert_model_parallel": 1, "route_every_n": 1,
          "first_k_dense_replace": 3, "num_experts": 128, "num_experts_per_tok": 4,
          "num_expert_groups": 1, "num_expert_groups_per_tok": 1, "routed_scale": 1.0,
          "expert_hidden_dim": 4096, "num_shared_experts": 1}})";

Json with(const char* params, const char* key, const char* value) {
  return Json::parse(json_with_member(params, key, value), "params.json");
}
Json config(const Json& params) {
  return config_of_mistral(params, "bfloat16");
}
Json config(const char* params) {
  return config(Json::parse(params, "params.json"));
}
std::string refusal(const char* params, const char* key, const char* value) {
  return error_of([&] { parse_model_config(config(with(params, key, value))); });
}

}  // namespace

TEST_CASE("mistral terms: a dense model") {
  const ModelConfig model = parse_model_config(config(kDense));
  CHECK(model.architecture == "MistralForCausalLM");
  CHECK(model.dim == 4096);
  CHECK(model.head_dim() == 128);
  CHECK(model.hidden_dim == 14336);
  CHECK(model.n_heads == 32);
  CHECK(model.ropes[0].theta == 1e6);
  CHECK(model.max_seq_len == 128'000);
  CHECK(model.dtype == DType::bf16);
  CHECK_FALSE(model.tied_embeddings);
  CHECK(model.eos_ids == std::vector<int32_t>{2});
  CHECK(model.unknown_keys.empty());
}

TEST_CASE("mistral terms: latent attention with experts, like Mistral Large 3") {
  const ModelConfig model = parse_model_config(config(kLatent));
  CHECK(model.architecture == "Mistral4ForCausalLM");
  CHECK(model.latent->q_rank == 1536);
  CHECK(model.latent->rope_dim == 64);
  CHECK(model.experts->count == 128);
  CHECK(model.experts->shared_hidden_dim == 4096);
  CHECK(model.ropes[0].factor == 36);
  CHECK(model.ropes[0].q_growth == 0.1);
  CHECK(model.ropes[0].attention_factor == 1.0);
  CHECK(model.block.attention_scale == doctest::Approx(1 / std::sqrt(192.0)));
  CHECK_FALSE(model.has_experts(2));
  CHECK(model.has_experts(3));
  CHECK(model.unknown_keys.empty());
}

TEST_CASE("mistral terms: yarn alone scales Q and K unless apply_scale is false") {
  const auto factor = [](const char* yarn) {
    return parse_model_config(config(with(kDense, "yarn", yarn))).ropes[0].attention_factor;
  };
  CHECK(factor(R"({"factor": 4, "original_max_position_embeddings": 8192})") ==
        doctest::Approx(0.1 * std::log(4.0) + 1));
  CHECK(
      factor(R"({"factor": 4, "original_max_position_embeddings": 8192, "apply_scale": false})") ==
      1.0);
}

TEST_CASE("mistral terms: windows of some layers, as a number, a string or a pattern") {
  const auto window = [](const char* value, int64_t layer) {
    return parse_model_config(config(with(kDense, "sliding_window", value))).window(layer);
  };
  CHECK(window("4096", 0) == 4096);
  CHECK(window("\"4096\"", 31) == 4096);
  CHECK(window("[4096]", 1) == 4096);
  CHECK(window("[null, 4096, 4096, 4096]", 0) == 0);
  CHECK(window("[null, 4096, 4096, 4096]", 7) == 4096);
}

TEST_CASE("mistral terms: a model with images has its language model inside") {
  const Json json = config(with(kDense, "vision_encoder", R"({"image_token_id": 10})"));
  CHECK(json.at("architectures")[0].as_string() == "Mistral3ForConditionalGeneration");
  CHECK(json.at("text_config").at("hidden_size").as_int() == 4096);
  CHECK(parse_model_config(json).dim == 4096);
}

TEST_CASE("mistral terms: unknown keys are reported, and keys of config.json refused") {
  CHECK(parse_model_config(config(with(kDense, "new_gate", "1"))).unknown_keys ==
        std::vector<std::string>{"new_gate"});
  CHECK(refusal(kDense, "hidden_size", "4096") ==
        "params.json: hidden_size: is a key of config.json, not of params.json");
}

TEST_CASE("mistral terms: missing keys are named") {
  for (const char* key : {"dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "hidden_dim",
                          "norm_eps", "vocab_size", "rope_theta"}) {
    CAPTURE(std::string(key));
    const std::string text = json_without_member(kDense, key);
    CHECK(error_of([&] {
            config(text.c_str());
          }).starts_with(cat("params.json: the key '", key, "' is missing")));
  }
  for (const char* key : {"q_lora_rank", "v_head_dim", "yarn", "llama_4_scaling"}) {
    CAPTURE(std::string(key));
    const std::string text = json_without_member(kLatent, key);
    CHECK(error_of([&] {
            config(text.c_str());
          }).starts_with(cat("params.json: the key '", key, "' is missing")));
  }
}

TEST_CASE("mistral terms: refusals name the key, its value and the one expected") {
  CHECK(refusal(kDense, "model_type", "\"mamba\"") ==
        "params.json: model_type: is \"mamba\", expected \"transformer\"");
  CHECK(says(refusal(kDense, "quantization", R"({"quant_method": "compressed-tensors"})"),
             "expected {\"qformat_weight\": \"fp8_e4m3\", ..}"));
  CHECK(says(refusal(kDense, "multimodal", R"({"whisper_model_args": {}})"), "models of sound"));
  CHECK(says(refusal(kDense, "moe", R"({"num_experts": 8})"), "num_experts_per_tok"));
  CHECK(says(refusal(kDense, "moe", R"({"num_experts": 8, "num_shared_experts": 1})"),
             "expected 0: shared experts are supported beside latent attention alone"));
  CHECK(refusal(kDense, "yarn", R"({"factor": 4, "original_max_position_embeddings": 8192,
                                    "bta": 32})") ==
        "params.json: yarn: has the key 'bta', which is not known here (did you mean 'beta'?)");
  CHECK(refusal(kLatent, "llama_4_scaling",
                R"({"original_max_position_embeddings": 4096, "beta": 0.1})") ==
        "params.json: llama_4_scaling.original_max_position_embeddings: is 4096, expected 8192 as "
        "in 'yarn': transformers has one number for both");
  CHECK(refusal(kLatent, "sliding_window", "4096") ==
        "params.json: sliding_window: is 4096, expected null: latent attention has no window here");
  CHECK(says(refusal(kLatent, "moe", R"({"route_every_n": 2, "num_experts": 8,
      "num_experts_per_tok": 2, "num_shared_experts": 1, "expert_hidden_dim": 8,
      "first_k_dense_replace": 1, "routed_scale": 1.0})"),
             "params.json: moe.route_every_n: is 2, expected 1"));
  CHECK(says(refusal(kDense, "sliding_window", "[null, 4096, 4096]"),
             "expected a list whose length divides 32"));
  CHECK(says(refusal(kDense, "sliding_window", "[null, 4096, 8192, null]"),
             "expected windows of one size"));
  CHECK(says(help_of([] { config(with(kDense, "model_type", "\"mamba\"")); }),
             "use the folder in the format of Hugging Face"));
}

}  // namespace fp8kv
