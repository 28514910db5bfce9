#include "config/parse_model_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/architectures.h"
#include "config/describe/describe_model.h"
#include "config/describe/token_ids.h"
#include "config/describe/window_keys.h"
#include "config/families/rope_config.h"
#include "config/known_keys.h"
#include "config/values/config_values.h"
#include "config/values/language_config.h"

namespace fp8kv {
namespace {

DType parse_dtype(const Json& config) {
  for (const Json& each : {config, language_config(config)}) {
    check_same(each.find("torch_dtype"), each.find("dtype"));
  }
  const auto name = find_dtype(config);
  if (!name) return DType::f32;
  const auto dtype = dtype_from_torch_name(name->as_string());
  if (!dtype || !is_compute_dtype(*dtype)) {
    fail(name->where(), ": is ", quote(name->as_string()),
         ", expected float32, float16 or bfloat16");
  }
  return *dtype;
}

// The number under any of the keys, or `otherwise` if none exists; with 0 a key must exist.
int64_t in_range_or(const Json& text, Spellings keys, int64_t most, int64_t otherwise) {
  const auto number = find_any(text, keys);
  if (!number && otherwise > 0) return otherwise;
  return in_range(number ? *number : text.at(*keys.begin()), most);
}

double parse_norm_eps(const Json& text, const Architecture& architecture) {
  if (architecture.norm_eps == nullptr) return ModelConfig().norm_eps;
  const Json eps = text.at(architecture.norm_eps);
  const double value = eps.as_double();
  if (!(value > 0 && value < 1)) {
    fail(eps.where(), ": is ", eps.brief(), ", expected a small positive number");
  }
  return value;
}

Activation parse_activation(const Json& text, const Architecture& architecture) {
  const auto name = text.find(architecture.activation);
  if (!name) return architecture.activations.front().activation;
  std::vector<std::string> known;
  for (const NamedActivation& row : architecture.activations) {
    if (row.name == name->as_string()) return row.activation;
    known.push_back(quote(row.name));
  }
  throw Error(
      cat(name->where(), ": the activation ", quote(name->as_string()), " is not supported"),
      cat("supported by ", architecture.name, ": ", join(known)));
}

// Reads the feed-forward width: one number for all layers, or one for each.
void set_hidden_dims(const Json& text, const Architecture& architecture, ModelConfig& out) {
  const auto listed = find_any(text, kHiddenDim);
  if (!listed || !listed->is_array()) {
    out.hidden_dim = in_range_or(text, kHiddenDim, kLargestDim, architecture.hidden_dims * out.dim);
    return;
  }
  if (listed->size() != out.layers.size()) {
    fail(listed->where(), ": has ", count_of(listed->size(), "number"),
         ", expected one for each of ", count_of(out.layers.size(), "layer"));
  }
  for (size_t i = 0; i < listed->size(); ++i) {
    out.hidden_dims.push_back(in_range((*listed)[i], kLargestDim));
    out.hidden_dim = std::max(out.hidden_dim, out.hidden_dims.back());
  }
}

// Finds a key in the language model's config, or else in the config around it.
std::optional<Json> find_in(const Json& config, const Json& text, const char* key) {
  const auto inner = text.find(key);
  return inner ? inner : config.find(key);
}

// Transformers goes by the outer config. It saves Mistral 3 like that by default: tied outside, not
// tied inside. check_tied refuses a checkpoint whose stored lm_head differs from the embedding.
bool parse_tied(const Json& config, const Json& text, const Architecture& architecture) {
  constexpr const char* kKey = "tie_word_embeddings";
  const auto inner = text.find(kKey), outer = config.find(kKey);
  if (inner && outer && outer->as_bool()) return true;
  if (inner && outer && inner->as_bool()) {
    throw Error(cat(inner->where(), ": is ", inner->brief(), ", but ", outer->where(), " is ",
                    outer->brief()),
                "correct the one that is wrong: runtimes differ in which they go by");
  }
  const auto said = inner ? inner : outer;
  return said ? said->as_bool() : architecture.tied;
}

// Refuses a cap in config.json that the architecture does not compute.
void check_caps(const Json& text, const BlockConfig& block) {
  const auto check = [&](const char* key, double taken) {
    const auto cap = text.find(key);
    if (!cap || taken != 0.0) return;
    fail(cap->where(), ": is ", cap->brief(), ": capping of logits is not supported");
  };
  check("attn_logit_softcapping", block.score_cap);
  check("final_logit_softcapping", block.logit_cap);
}

// Refuses experts in config.json that the architecture does not have.
void check_experts(const Json& text, const Architecture& architecture, const ModelConfig& out) {
  const bool any = std::any_of(out.layers.begin(), out.layers.end(), [](const auto& layer) {
    return layer.feed_forward == FeedForward::experts;
  });
  if (!any || out.experts) return;
  const auto count = find_any(text, kExpertCount);
  fail(count ? count->where() : text.where(), ": asks for experts, which ", architecture.name,
       " has not");
}

std::vector<std::string> unknown_keys(const Json& config, const Json& text, const JsonReads& reads,
                                      const std::string& architecture) {
  std::vector<std::string> unknown = check_keys(text, reads, architecture);
  for (const std::string& key : unread_window_keys(text)) unknown.push_back(key);
  if (!wrapped_config(config)) return unknown;
  for (const std::string& key : check_keys(config, reads, architecture)) {
    if (std::find(unknown.begin(), unknown.end(), key) == unknown.end()) unknown.push_back(key);
  }
  return unknown;
}

// Refuses is_causal = false, with which transformers lets every token see all others in any model.
void check_causal(const Json& text) {
  const auto causal = text.find("is_causal");
  if (!causal || causal->as_bool()) return;
  fail(causal->where(), ": is false: attention to tokens that come later is not supported");
}

}  // namespace

ModelConfig parse_model_config(const Json& unread) {
  JsonReads reads;
  const Json config = unread.noting(reads);
  const Json text = language_config(config).noting(reads);
  const Architecture& architecture = architecture_at(config);
  ModelConfig out;
  static_cast<ModelDescription&>(out) = describe_model(config, text);
  out.tensors = architecture.tensors;
  out.model_prefix = architecture.model_prefix;
  out.lm_head = architecture.lm_head;
  out.dim = in_range(at_any(text, kDim), kLargestDim);
  set_hidden_dims(text, architecture, out);
  out.vocab_size = in_range(text.at("vocab_size"), kLargestDim);
  out.max_seq_len = in_range_or(text, kContext, kLongestContext, architecture.context);
  // With latent attention the family checks the rotated part itself.
  if (out.head_dim() % 2 != 0 && !out.layer(0).v_in_k) {
    fail(text.where(), ": has heads of ", out.head_dim(),
         " elements, expected an even number, since they are rotated in pairs");
  }
  out.norm_eps = parse_norm_eps(text, architecture);
  out.block.activation = parse_activation(text, architecture);
  set_ropes(text, architecture.rope, out);
  out.dtype = parse_dtype(config);
  out.tied_embeddings = parse_tied(config, text, architecture);
  if (const auto ids = find_in(config, text, "eos_token_id")) out.eos_ids = parse_token_ids(*ids);
  if (const auto id = find_in(config, text, "bos_token_id")) out.bos_id = parse_token_id(*id);
  check_causal(config);
  check_causal(text);
  check_layers(architecture, text, out);
  architecture.parse(text, out);
  check_experts(text, architecture, out);
  check_caps(text, out.block);
  out.unknown_keys = unknown_keys(config, text, reads, architecture.name);
  return out;
}

}  // namespace fp8kv
