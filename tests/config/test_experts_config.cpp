// The description of experts in config.json, and refused values.
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "config/families/tensor_table.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::config_with;
using test::error_of;
using test::error_of_config;
using test::parse_config;

std::string qwen3_with(const std::string& key, const std::string& value) {
  return config_with("Qwen3MoeForCausalLM", key, value);
}

// The error for a folder after `change` has edited its tensors.
template <typename Change>
std::string error_with_tensors(const std::string& architecture, const Change& change) {
  const test::TempDir temp;
  const test::TinyConfig config = test::tiny_config(architecture);
  test::write_tiny_checkpoint(temp / "model", config);
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(config);
  change(tensors);
  test::write_tiny_weights(temp / "model", tensors, config.dtype);
  return error_of([&] { read_model_config(Checkpoint::open(temp / "model")); });
}

auto is_named(const std::string& name) {
  return [name](const test::TinyTensor& tensor) { return tensor.name == name; };
}

}  // namespace

TEST_CASE("experts config: reads the config.json of Qwen3-30B-A3B") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
    "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
    "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
    "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
    "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
  REQUIRE(config.experts);
  CHECK(config.experts->count == 128);
  CHECK(config.experts->hidden_dim == 768);
  CHECK(config.experts->routing.per_token == 8);
  CHECK(config.experts->routing.normalise);
  CHECK(config.experts->routing.score == RouterScore::softmax);
  CHECK(config.experts->shared_hidden_dim == 0);
  CHECK(config.block.qk_norm == QkNorm::per_head);
  // The router, 128 experts of three matrices, and the other tensors of Qwen 3.
  CHECK(layer_tensors(config, 47).size() == 1 + 3 * 128 + 8);
}

TEST_CASE("experts config: reads the config.json of Mixtral 8x7B") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
    "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false,
    "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02,
    "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.36.0.dev0", "use_cache": true, "vocab_size": 32000})");
  REQUIRE(config.experts);
  CHECK(config.experts->count == 8);
  CHECK(config.experts->hidden_dim == 14336);
  CHECK(config.experts->routing.per_token == 2);
  CHECK(config.experts->routing.normalise);
  CHECK(config.window(3) == 0);
}

TEST_CASE("experts config: reads the config.json of Qwen1.5-MoE-A2.7B") {
  const ModelConfig config = parse_config(R"({
    "architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "decoder_sparse_step": 1, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 5632, "max_position_embeddings": 8192,
    "max_window_layers": 21, "model_type": "qwen2_moe", "moe_intermediate_size": 1408,
    "norm_topk_prob": false, "num_attention_heads": 16, "num_experts": 60,
    "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 16,
    "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 5632,
    "sliding_window": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.39.0.dev0", "use_cache": true, "use_sliding_window": false,
    "vocab_size": 151936})");
  REQUIRE(config.experts);
  CHECK(config.qkv_bias);
  CHECK_FALSE(config.experts->routing.normalise);
  CHECK(config.experts->shared_hidden_dim == 5632);
  CHECK(config.experts->shared_gated);
  CHECK(config.window(23) == 0);
}

TEST_CASE("experts config: what no router can do is refused by key") {
  CHECK(error_of_config(qwen3_with("num_experts_per_tok", "7")) ==
        "config.json: num_experts_per_tok: is 7, expected no more than the 6 experts of "
        "config.json: num_experts");
  CHECK(error_of_config(qwen3_with("num_experts_per_tok", "0")) ==
        "config.json: num_experts_per_tok: is 0, expected 1 to 4096");
  CHECK(error_of_config(qwen3_with("num_experts_per_tok", "null")) ==
        "config.json: the key 'num_experts_per_tok' is null");
  CHECK(error_of_config(qwen3_with("moe_intermediate_size", "0")) ==
        "config.json: moe_intermediate_size: is 0, expected 1 to 268435456");
  CHECK(error_of_config(qwen3_with("num_experts", "100000")) ==
        "config.json: num_experts: is 100000, expected 2 to 4096");
  CHECK(error_of_config(qwen3_with("num_experts", "1")) ==
        "config.json: num_experts: is 1, expected at least 2 experts, or 0 for a model without");
  CHECK(error_of_config(qwen3_with("use_sliding_window", "true")) ==
        "config.json: use_sliding_window: is true: a sliding window is not supported in this "
        "architecture");
  CHECK(error_of_config(config_with("MixtralForCausalLM", "num_local_experts", "null")) ==
        "config.json: the key 'num_local_experts' is null");
  CHECK(error_of_config(
            config_with("Qwen2MoeForCausalLM", "shared_expert_intermediate_size", "null")) ==
        "config.json: the key 'shared_expert_intermediate_size' is null");
}

TEST_CASE("experts config: layers without experts have Llama's feed-forward part") {
  const ModelConfig config = parse_config(qwen3_with("mlp_only_layers", "[0]"));
  CHECK(config.layer(0).feed_forward == FeedForward::gated);
  CHECK(config.layer(1).feed_forward == FeedForward::experts);
  const auto last_name = [&](int64_t layer) { return layer_tensors(config, layer).back().name; };
  CHECK(last_name(0) == "model.layers.0.mlp.down_proj.weight");
  CHECK(last_name(1) == "model.layers.1.mlp.experts.5.down_proj.weight");
}

// transformers 5 saves the family's defaults for such keys.
TEST_CASE("experts config: what is said of experts counts for nothing where no layer has any") {
  const auto dense = [](const char* golden, const char* dense_layers) {
    JsonWriter text;
    text.value(test::family_golden(golden).at("config"));
    std::string config = json_with_member(text.text(), "first_k_dense_replace", dense_layers);
    for (const auto& [key, value] : {std::pair{"n_group", "8"},
                                     {"topk_group", "4"},
                                     {"n_shared_experts", "2"},
                                     {"routed_scaling_factor", "2.5"}}) {
      config = json_with_member(config, key, value);
    }
    return parse_config(config);
  };
  for (const char* golden : {"deepseek-v2", "deepseek-v3", "glm4-moe"}) {
    CAPTURE(golden);
    const ModelConfig config = dense(golden, "99");
    CHECK_FALSE(config.experts);
    CHECK(config.unknown_keys.empty());
  }
  const ModelConfig nemotron = dense("nemotron-h-dense", "null");
  CHECK_FALSE(nemotron.experts);
  CHECK(nemotron.unknown_keys.empty());
}

// transformers 5.24 saves a dense Gemma 4 with this null.
TEST_CASE("experts config: the experts of a token are known in a Gemma 4 without experts") {
  JsonWriter text;
  text.value(test::family_golden("gemma4").at("config"));
  const std::string config = json_with_member(text.text(), "top_k_experts", "null");
  CHECK_FALSE(parse_config(config).experts);
  CHECK(parse_config(config).unknown_keys.empty());
}

TEST_CASE("experts config: an expert that is missing is named") {
  const std::string up = "model.layers.0.mlp.experts.4.up_proj.weight";
  CHECK(error_with_tensors("Qwen3MoeForCausalLM", [&](auto& tensors) {
          std::erase_if(tensors, is_named(up));
        }).find("'" + up + "'") != std::string::npos);
  const std::string router = "model.layers.1.block_sparse_moe.gate.weight";
  CHECK(error_with_tensors("MixtralForCausalLM", [&](auto& tensors) {
          std::erase_if(tensors, is_named(router));
        }).find("'" + router + "'") != std::string::npos);
}

TEST_CASE("experts config: experts of uneven shapes, and one too many, are refused by tensor") {
  const std::string down = "model.layers.1.block_sparse_moe.experts.2.w2.weight";
  CHECK(error_with_tensors("MixtralForCausalLM", [&](auto& tensors) {
          const auto found = std::find_if(tensors.begin(), tensors.end(), is_named(down));
          found->shape = {found->shape[0], found->shape[1] - 1};
          found->values.resize(static_cast<size_t>(found->shape.elements()));
        }).ends_with("'" + down + "': has the shape [32, 47], expected [32, 48] from config.json"));
  const std::string more = "model.layers.0.mlp.experts.6.up_proj.weight";
  CHECK(error_with_tensors("Qwen3MoeForCausalLM", [&](auto& tensors) {
          test::TinyTensor extra =
              *std::find_if(tensors.begin(), tensors.end(),
                            is_named("model.layers.0.mlp.experts.5.up_proj.weight"));
          extra.name = more;
          tensors.push_back(extra);
        }).ends_with("'" + more + "': is not a part of Qwen3MoeForCausalLM with this config.json"));
}

}  // namespace fp8kv
