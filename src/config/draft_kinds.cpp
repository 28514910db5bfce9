#include "config/draft_kinds.h"

#include "config/values/config_values.h"
#include "config/values/language_config.h"

namespace fp8kv {
namespace {

using Names = std::string_view;

constexpr Names kNextn[] = {"num_nextn_predict_layers"};
constexpr Names kMtpLayers[] = {"mtp_num_hidden_layers", "num_nextn_predict_layers"};

constexpr Names kBehindTheLast[] = {"DeepseekV3ForCausalLM", "Glm4MoeForCausalLM",
                                    "Glm4MoeLiteForCausalLM"};
constexpr Names kMtp[] = {"Qwen3NextForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM",
                          "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"};

// Sources: vLLM 0.33, model_executor/models/{deepseek,glm4_moe,qwen3_5,qwen3_next,mimo,ernie,
// nemotron_h,longcat_flash}_mtp.py; vLLM 0.32, models/inkling/nvidia/mtp.py.
constexpr DraftKind kKinds[] = {
    {.name = "nextn",
     .layers = "",
     .counts = kNextn,
     .entry = {"{}.enorm", "{}.hnorm", "{}.eh_proj", false, true},
     .computed = kBehindTheLast},
    {.name = "mtp",
     .layers = "mtp.layers.",
     .counts = kMtpLayers,
     .entry = {"mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc"},
     .computed = kMtp},
    {.name = "mtp with its own entry",
     .layers = "mtp.layers.",
     .counts = kNextn,
     .entry = {"{}.enorm", "{}.hnorm", "{}.eh_proj"},
     .computed = {}},
    {.name = "mtp_layers",
     .layers = "model.mtp_layers.",
     .counts = kNextn,
     .entry = {"{}.token_layernorm", "{}.hidden_layernorm", "{}.input_proj", true, true},
     .computed = {}},
    {.name = "mtp_block",
     .layers = "model.mtp_block.",
     .counts = kNextn,
     .entry = {"model.mtp_emb_norm.0", "model.mtp_hidden_norm.0", "model.mtp_linear_proj.0", false,
               true},
     .computed = {}},
    {.name = "model.mtp",
     .layers = "model.mtp.layers.",
     .counts = kNextn,
     .entry = {"{}.enorm.m", "{}.hnorm.m", "{}.eh_proj"},
     .computed = {}},
    {.name = "model.mtp with blocks",
     .layers = "model.mtp.layers.",
     .counts = kNextn,
     .entry = {"{}.embed_norm", "{}.hidden_norm", "{}.input_proj", true},
     .computed = {}},
};

}  // namespace

std::span<const DraftKind> draft_kinds() {
  return kKinds;
}

int64_t draft_count(const DraftKind& kind, const Json& config) {
  const Json text = language_config(config);
  for (const std::string_view key : kind.counts) {
    for (const Json& part : {text, config}) {
      const auto count = part.find(std::string(key));
      if (count && count->is_number()) return in_range(*count, 0, kMostLayers);
    }
  }
  return 0;
}

}  // namespace fp8kv
