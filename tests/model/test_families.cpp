// Every architecture against transformers' results, with small random models.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "checkpoint/identity/fingerprint.h"
#include "checkpoint/model/read_model_config.h"
#include "config/architectures.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"

namespace fp8kv {
TEST_CASE("families: logits, at once and token by token, are transformers'") {
  const auto backend = make_cpu_backend(2);
  for (const std::string& name : test::family_cases(0)) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    test::check_logits(model, test::run_model(model.checkpoint, model.config, *backend, model.ids));
    test::check_logits(
        model, test::run_model(model.checkpoint, model.config, *backend, model.ids, {.chunk = 1}));
  }
}

TEST_CASE("families: a prompt and its decode steps give the logits of one pass") {
  const auto backend = make_cpu_backend(2);
  const auto difference = [&](const Checkpoint& checkpoint, const ModelConfig& config,
                              const std::vector<int32_t>& ids) {
    return test::logit_difference(
        test::run_model(checkpoint, config, *backend, ids, {.chunk = 1, .prompt = 16}),
        test::run_model(checkpoint, config, *backend, ids));
  };
  for (const std::string& name : test::family_cases(1)) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    CHECK(difference(model.checkpoint, model.config, model.ids) < test::kLogitTolerance);
  }
  for (const char* name : test::kGoldens) {
    CAPTURE(std::string(name));
    const auto [folder, file, ids] = test::golden(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    if (config.dtype != DType::f32) continue;  // others round their inputs
    CHECK(difference(checkpoint, config, ids) < test::kLogitTolerance);
  }
}

TEST_CASE("families: greedy text is transformers'") {
  const auto backend = make_cpu_backend(2);
  for (const std::string& name : test::family_cases(2)) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const std::vector<int32_t> prompt(model.ids.begin(),
                                      model.ids.begin() + test::FamilyModel::kPrompt);
    CHECK(test::run_greedy({model.checkpoint, model.config, *backend}, prompt,
                           static_cast<int>(model.greedy.size())) == model.greedy);
  }
}

TEST_CASE("families: amax of K and V, head by head, is that of transformers' cache") {
  const auto backend = make_cpu_backend(2);
  for (const std::string& name : test::family_cases(0)) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    Log log(Verbosity::quiet);
    test::check_amax(
        model, collect_magnitudes({model.checkpoint, model.config, *backend}, {model.ids}, log));
  }
}

TEST_CASE("families: every model has a fingerprint, by whatever name it has K and V") {
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    CHECK(find_fingerprint(model.checkpoint, model.config));
  }
}

// A test of the tests: a forward pass that ignored a knob would compute as with the value here. So
// the goldens must tell the two apart.
TEST_CASE("families: a knob that is left out changes the logits of a golden") {
  struct Knob {
    const char* name;
    const char* key;
    const char* value;
  };
  const Knob knobs[] = {
      {"baichuan-13b", "max_position_embeddings", "64"},
      {"baichuan-7b", "max_position_embeddings", "null"},
      {"baichuan-7b", "z_loss_weight", "0"},
      {"cohere", "logit_scale", "1.0"},
      {"cohere2", "sliding_window", "64"},
      {"cohere2", "sliding_window_pattern", "4"},
      {"deepseek-v32", "index_topk", "17"},
      {"deepseek-v32-seven", "index_topk", "64"},
      {"falcon-classic", "rope_theta", "10000.0"},
      {"falcon-rw", "alibi", "false"},
      {"falcon-rw-seven", "alibi", "false"},
      {"gemma2", "attn_logit_softcapping", "null"},
      {"gemma2", "query_pre_attn_scalar", "12"},
      {"gemma2", "sliding_window", "64"},
      {"gemma3", "query_pre_attn_scalar", "12"},
      {"gemma3", "rope_local_base_freq", "1000000.0"},
      {"gemma3", "rope_theta", "100.0"},
      {"gemma3", "sliding_window_pattern", "2"},
      {"gemma3-linear", "rope_scaling", "null"},
      {"gemma3-new-keys", "final_logit_softcapping", "null"},
      {"glm", "rope_theta", "500.0"},
      {"glm-moe-dsa", "index_topk", "40"},
      {"glm-moe-dsa-shared", "index_topk", "12"},
      {"glm4-moe", "norm_topk_prob", "false"},
      {"glm4-moe", "routed_scaling_factor", "1.0"},
      {"glm4-moe-groups", "topk_group", "4"},
      {"gpt-bigcode-heads", "activation_function", R"("gelu")"},
      {"gpt-neox", "rotary_pct", "1.0"},
      {"gpt-neox", "use_parallel_residual", "false"},
      {"gpt-neox-sequential", "rotary_emb_base", "10000"},
      {"gpt-neox-sequential", "use_parallel_residual", "true"},
      {"gpt-oss", "sliding_window", "64"},
      {"gpt-oss", "swiglu_limit", "7.0"},
      {"gpt-oss-new-keys", "swiglu_alpha", "1.702"},
      {"gpt2", "activation_function", R"("gelu")"},
      {"gpt2-scales", "scale_attn_by_inverse_layer_idx", "false"},
      {"gpt2-scales", "scale_attn_weights", "true"},
      {"granite", "attention_multiplier", "0.35355339"},
      {"granite", "embedding_multiplier", "1.0"},
      {"granite", "logits_scaling", "1.0"},
      {"granite", "residual_multiplier", "1.0"},
      {"internlm2-heads", "rope_theta", "10000.0"},
      {"llama4", "attention_chunk_size", "64"},
      {"llama4", "attn_scale", "0.1"},
      {"llama4", "attn_temperature_tuning", "false"},
      {"llama4", "floor_scale", "20"},
      {"llama4", "no_rope_layer_interval", "5"},
      {"llama4", "use_qk_norm", "false"},
      {"llama4-experts", "no_rope_layers", "[1, 1, 1, 0]"},
      {"llama4-experts", "num_experts_per_tok", "1"},
      {"llama4-experts", "use_qk_norm", "true"},
      {"minicpm", "dim_model_base", "32"},
      {"minicpm", "scale_depth", "1.0"},
      {"minicpm", "scale_emb", "1"},
      {"minicpm-longrope", "rope_scaling", "null"},
      {"minimax-m2", "rotary_dim", "null"},
      {"ministral3", "rope_parameters",
       R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "mscale": 1.0,
           "mscale_all_dim": 1.0, "original_max_position_embeddings": 16})"},
      {"olmo3", "sliding_window", "64"},
      {"olmo3-yarn", "rope_parameters",
       R"({"full_attention": {"rope_type": "default", "rope_theta": 30.0},
           "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}})"},
      {"opt", "activation_function", R"("gelu")"},
      {"phi", "hidden_act", R"("gelu")"},
      {"phi", "partial_rotary_factor", "1.0"},
      {"phi3-longrope", "original_max_position_embeddings", "16"},
      {"phi3-longrope", "rope_scaling", "null"},
      {"phi4-mini", "sliding_window", "null"},
      {"phimoe", "router_jitter_noise", "0.01"},
      {"phimoe-longrope", "router_jitter_noise", "0.01"},
      {"phimoe-longrope", "rope_scaling",
       R"({"type": "longrope", "short_factor": [1.0, 1.5, 2.0, 2.5],
           "long_factor": [2.0, 3.0, 4.0, 5.0], "short_mscale": 1.0, "long_mscale": 1.0,
           "original_max_position_embeddings": 48})"},
      {"phimoe-seven", "sliding_window", "null"},
      {"smollm3", "no_rope_layers", "[1, 1, 1]"},
      {"smollm3-interval", "no_rope_layer_interval", "4"},
      {"smollm3-interval", "use_sliding_window", "false"},
      {"stablelm", "partial_rotary_factor", "0.5"},
      {"starcoder2", "hidden_act", R"("gelu")"},
      {"starcoder2-window", "sliding_window", "null"},
  };
  const auto backend = make_cpu_backend(2);
  for (const Knob& knob : knobs) {
    CAPTURE(std::string(knob.name));
    CAPTURE(std::string(knob.key));
    const test::FamilyModel model(knob.name, knob.key, knob.value);
    const auto logits = test::run_model(model.checkpoint, model.config, *backend, model.ids);
    CHECK(test::logit_difference(model, logits) > 5 * test::kLogitTolerance);
  }
}

}  // namespace fp8kv
