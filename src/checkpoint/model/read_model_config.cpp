#include "checkpoint/model/read_model_config.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/model/quantised_tensors.h"
#include "checkpoint/model/stored_names.h"
#include "checkpoint/model_weights.h"
#include "checkpoint/quant_config.h"
#include "config/describe/describe_indexer.h"
#include "config/families/tensor_table.h"
#include "config/parse_model_config.h"
#include "config/values/language_config.h"
#include "core/model/tensor_roles.h"
#include "quant/changed_values.h"

namespace fp8kv {
namespace {

constexpr const char* kUnquantised = "calibrate the unquantised model that this one was made from";

constexpr const char* kOneDtype =
    "save the model in one dtype: M.from_pretrained(FOLDER, torch_dtype=...)"
    ".save_pretrained(NEW_FOLDER)";

// The tensors that a checkpoint of this model must hold.
class Expected {
 public:
  // `embed` and `lm_head` tell whether these two weights are expected. A bias of lm_head is always
  // expected, since tied models do not share it.
  Expected(const ModelConfig& config, bool embed, bool lm_head) {
    for (ModelTensor& tensor : outer_tensors(config)) {
      const TensorRole role = tensor.parts.front().role;
      if (role == TensorRole::embedding && !embed) continue;
      if (role == TensorRole::lm_head && !lm_head && !tensor.is_bias) continue;
      add(std::move(tensor));
    }
    for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
      for (ModelTensor& tensor : layer_tensors(config, layer)) add(std::move(tensor));
    }
  }

  const std::vector<ModelTensor>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  void add(ModelTensor tensor) {
    names_.insert(tensor.name);
    tensors_.push_back(std::move(tensor));
  }

  std::vector<ModelTensor> tensors_;
  std::set<std::string> names_;
};

std::string tensor_of(const Checkpoint& checkpoint, const std::string& name) {
  return cat(quote(checkpoint.folder().string()), ": tensor ",
             quote(checkpoint.name_in_file(name)));
}

// Throws because the tensor cannot be computed with: its quantised form is unsupported, or differs
// from config.json.
[[noreturn]] void refuse_form(const Checkpoint& checkpoint, const std::string& name,
                              const std::string& why) {
  const TensorEntry* entry = checkpoint.find(name);
  const std::string found = cat(tensor_of(checkpoint, name),
                                entry ? cat(": is ", dtype_name(entry->dtype)) : ": is missing",
                                why.empty() ? "" : "; ", why);
  throw Error(cat(found,
                  ", and what is computed with are F32, F16 and BF16 weights, or weights "
                  "stored as fp8, int8, nvfp4, mxfp4, pack-quantized, gptq or awq"),
              kUnquantised);
}

void check_shapes(const Checkpoint& checkpoint, const ModelWeights& weights,
                  const Expected& expected, const std::string& quantised) {
  bool any = false;
  for (const ModelTensor& tensor : expected.tensors()) {
    const auto found = weights.find(tensor);
    if (found && found->stored) any = true;
    if (!found && !quantised.empty()) refuse_form(checkpoint, tensor.name, quantised);
    const Weight weight = found ? *found : weights.at(tensor);
    if (!is_compute_dtype(weight.dtype)) refuse_form(checkpoint, tensor.name, quantised);
    if (weight.shape == tensor.shape) continue;
    const std::string config = checkpoint.config_path().filename().string();
    throw Error(cat(tensor_of(checkpoint, tensor.name), ": has the shape ", weight.shape.text(),
                    ", expected ", tensor.shape.text(), " from ", config),
                cat(config, " and the weights are not of the same model"));
  }
  if (any || quantised.empty()) return;
  throw Error(
      cat(quantised, ", but all of them are F32, F16 or BF16"),
      "take the quantization_config out of config.json where the weights are not quantised");
}

// Whether the files may have this tensor in F32 beside weights in 16 bits.
bool may_be_f32(TensorRole role, const ModelConfig& config) {
  const bool norm = role == TensorRole::attn_norm || role == TensorRole::q_down_norm ||
                    role == TensorRole::k_norm || role == TensorRole::ffn_norm ||
                    role == TensorRole::norm;
  return role_row(role).may_be_f32 || (norm && config.f32_norms);
}

// The dtype that all plain weights share. A mixed checkpoint was saved half converted, or is of an
// unsupported kind. The error compares with Q, or with the first plain weight if Q is not plain.
DType shared_dtype(const Checkpoint& checkpoint, const ModelConfig& config,
                   const Expected& expected) {
  const auto plain = [&](const std::string& name) -> const TensorEntry* {
    const TensorEntry* entry = checkpoint.find(name);
    return entry && is_compute_dtype(entry->dtype) ? entry : nullptr;
  };
  const TensorEntry* first = plain(q_name(config));
  for (const ModelTensor& tensor : expected.tensors()) {
    const TensorEntry* entry = plain(tensor.name);
    if (!entry || (may_be_f32(tensor.parts.front().role, config) && entry->dtype == DType::f32)) {
      continue;
    }
    if (!first) first = entry;
    if (entry->dtype == first->dtype) continue;
    throw Error(cat(tensor_of(checkpoint, tensor.name), ": is ", dtype_name(entry->dtype), ", but ",
                    quote(first->name), " is ", dtype_name(first->dtype)),
                kOneDtype);
  }
  return first ? first->dtype : DType::bf16;
}

// Whether all tensors of the roles are F32 beside weights in 16 bits. Throws if only some are.
bool are_f32(std::initializer_list<TensorRole> roles, const Checkpoint& checkpoint,
             const ModelConfig& config, const Expected& expected) {
  const std::string* f32 = nullptr;
  const std::string* other = nullptr;
  for (const ModelTensor& tensor : expected.tensors()) {
    const TensorRole role = tensor.parts.front().role;
    if (std::find(roles.begin(), roles.end(), role) == roles.end()) continue;
    const TensorEntry* entry = checkpoint.find(tensor.name);
    if (entry == nullptr || config.dtype == DType::f32) continue;
    (entry->dtype == DType::f32 ? f32 : other) = &tensor.name;
  }
  if (f32 == nullptr || other == nullptr) return f32 != nullptr;
  throw Error(cat(tensor_of(checkpoint, *f32), ": is F32, but ", quote(*other), " is ",
                  dtype_name(config.dtype)),
              kOneDtype);
}

// Checks tied weights that are both stored. If they differ, transformers 5 computes with lm_head,
// while older versions and vLLM use the embedding.
void check_tied(const Checkpoint& checkpoint, const std::string& embedding,
                const std::string& lm_head) {
  const MappedTensor a = checkpoint.map(embedding);
  const MappedTensor b = checkpoint.map(lm_head);
  if (std::memcmp(a.view.data, b.view.data, a.view.bytes()) == 0) return;
  throw Error(cat(tensor_of(checkpoint, lm_head), ": differs from ", quote(embedding),
                  ", though config.json has \"tie_word_embeddings\": true"),
              "set \"tie_word_embeddings\": false in config.json where lm_head counts, else leave "
              "it out of the weights: runtimes differ in which they take");
}

// Whether the tensor belongs to a part beside the language model: a vision or audio tower, its
// projector, or layers that predict further tokens. Such tensors are ignored.
bool is_other_part(std::string_view name) {
  constexpr std::string_view kParts[] = {"audio.",
                                         "audio_encoder.",
                                         "audio_tokenizer.",
                                         "audio_tower.",
                                         "connector.",
                                         "embed_audio.",
                                         "embed_tokens_extend.",
                                         "embed_vision.",
                                         "image_newline",
                                         "mlp1.",
                                         "multi_modal_projector.",
                                         "mtp.",
                                         "mtp_layers.",
                                         "resampler_model.",
                                         "speech_embeddings.",
                                         "vision_adapter.",
                                         "vision_model.",
                                         "vision_projection.",
                                         "vision_embedder.",
                                         "vision_tower.",
                                         "visual."};
  const std::string_view inner = without_wrappers(name);
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return inner.starts_with(part); });
}

// Whether the tensor is of an adapter (LoRA) beside a matrix below base_layer. Images and speech
// switch it on: Phi-4 multimodal.
bool is_of_adapter(std::string_view name, const Checkpoint& checkpoint) {
  const size_t at = name.find(".lora_");
  return at != name.npos && checkpoint.find(cat(name.substr(0, at), ".base_layer.weight"));
}

// Whether the tensor is in a layer behind the last, which predicts the token after the next.
// config.json counts such layers separately, and they are ignored.
bool is_of_later_layer(std::string_view name, const Checkpoint& checkpoint,
                       const ModelConfig& config) {
  const auto parts = split_layer_name(name);
  const int64_t more = language_config(checkpoint.config()).get_int("num_nextn_predict_layers", 0);
  return parts && parts->prefix == config.model_prefix && parts->layer >= config.n_layers() &&
         parts->layer < config.n_layers() + more;
}

// Whether the tensor makes K or V in a layer that reads another layer's cache. Google's files have
// such tensors, but no model reads them.
bool is_of_unused_cache(std::string_view name, const ModelConfig& config) {
  const auto parts = split_layer_name(name);
  if (!parts || parts->prefix != config.model_prefix || parts->layer >= config.n_layers()) {
    return false;
  }
  const int64_t source = config.layer(parts->layer).cache_of;
  const auto rest = in_attention(parts->rest);
  return source >= 0 && source != parts->layer && rest &&
         (rest->starts_with("k_") || rest->starts_with("v_"));
}

// Whether the tensor is part of a sparse indexer that never leaves out a token.
bool is_of_indexer(std::string_view name, const Checkpoint& checkpoint, const ModelConfig& config) {
  if (config.indexer) return false;
  const auto parts = split_layer_name(name);
  const auto rest = parts ? in_attention(parts->rest) : std::nullopt;
  return rest && (rest->starts_with("indexer.") || rest->starts_with("index_")) &&
         has_indexer(language_config(checkpoint.config()));
}

// The number of an expert that the name in a layer is of; -1 if it is of none.
int64_t expert_in(std::string_view rest) {
  constexpr std::string_view kExperts = "mlp.experts.";
  if (!rest.starts_with(kExperts)) return -1;
  int64_t number = -1;
  const std::string_view digits = rest.substr(kExperts.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? number : -1;
}

// Whether the tensor is of an identity, which transformers saves with matrices: LongCat Flash.
bool is_of_identity(std::string_view name, const ModelConfig& config) {
  const auto parts = split_layer_name(name);
  const int64_t expert = parts && config.experts ? expert_in(parts->rest) : -1;
  return expert >= 0 && parts->prefix == config.model_prefix && expert >= config.experts->count &&
         expert < config.experts->choices();
}

// Whether the name in a layer is that of an expert for images. Families whose choice bias has a
// second row have as many of them as for text, with the numbers behind those.
bool is_image_expert(std::string_view rest, const ModelConfig& config) {
  const bool has_images =
      std::any_of(config.tensors.begin(), config.tensors.end(),
                  [](const TensorRow& row) { return row.form == VectorForm::first_of_two; });
  const int64_t number = expert_in(rest);
  return has_images && number >= config.experts->count && number < 2 * config.experts->count;
}

// Whether the tensor is in a layer that never uses it: the norm of the experts' output in a layer
// without experts (A.X K1), or an expert for images (ERNIE 4.5 VL).
bool is_idle_in_layer(std::string_view name, const ModelConfig& config) {
  const auto parts = split_layer_name(name);
  if (!config.experts || !parts || parts->prefix != config.model_prefix ||
      parts->layer >= config.n_layers()) {
    return false;
  }
  if (!config.has_experts(parts->layer)) {
    return config.experts->post_norm &&
           name == weight_name(config, TensorRole::ffn_post_norm, parts->layer);
  }
  return is_image_expert(parts->rest, config);
}

// The first part of a dotted name: "model" in "model.layers.{}.mlp.up_proj".
std::string_view first_part(std::string_view name) {
  return name.substr(0, name.find('.'));
}

// Whether the tensor is a layer's causal mask, which older versions saved.
bool is_mask(const TensorEntry& entry) {
  return entry.shape.rank() == 4 &&
         (entry.name.ends_with("attn.bias") || entry.name.ends_with("attention.bias"));
}

// Throws if the config asks for any other change of values than multiplying by weights.
void check_unchanged_values(const QuantConfig& quant) {
  const std::string change = change_at_run_time(quant.block);
  if (!change.empty()) throw Error(cat(change, ", which is not computed here"), kUnquantised);
}

// Throws for a weight that nothing reads. It means that the model is not what its config.json
// describes: biases that are off, norms of another architecture, more layers. Scales and buffers do
// not count as weights.
void check_no_others(const Checkpoint& checkpoint, const ModelConfig& config,
                     const Expected& expected) {
  const auto find = [&](const std::string& name) { return checkpoint.find(name); };
  for (const auto& [name, location] : checkpoint.tensors()) {
    const bool weight = name.ends_with(".weight") || name.ends_with(".bias");
    const std::string change = weight ? "" : change_by(name, find);
    const bool of_model = config.model_prefix.empty() ||
                          first_part(name) == first_part(config.model_prefix) ||
                          first_part(name) == first_part(config.lm_head);
    if ((!weight && change.empty()) || !of_model || is_other_part(name) || expected.contains(name))
      continue;
    if (is_mask(location.entry)) continue;
    if (is_of_later_layer(name, checkpoint, config) || is_of_unused_cache(name, config)) continue;
    if (is_of_indexer(name, checkpoint, config) || is_of_adapter(name, checkpoint)) continue;
    if (is_idle_in_layer(name, config) || is_of_identity(name, config)) continue;
    if (!weight) {
      throw Error(cat(tensor_of(checkpoint, name), ": ", change, ", which is not computed here"),
                  kUnquantised);
    }
    throw Error(cat(tensor_of(checkpoint, name), ": is not a part of ", config.architecture,
                    " with this config.json"),
                "config.json and the weights are not of the same model");
  }
}

}  // namespace

ModelConfig read_model_config(const Checkpoint& checkpoint) {
  ModelConfig config = parse_model_config(checkpoint.config());
  find_stored_names(checkpoint, config);
  const std::string lm_head = weight_name(config, TensorRole::lm_head);
  const bool has_embed = checkpoint.find(weight_name(config, TensorRole::embedding)) != nullptr;
  const bool has_lm_head = has_weight(checkpoint, lm_head);
  const bool tied = config.tied_embeddings;
  if (!tied && has_embed && !has_lm_head) {
    throw Error(cat(tensor_of(checkpoint, lm_head),
                    ": is missing, and config.json does not say that it is the embeddings"),
                "if it is, set \"tie_word_embeddings\": true in config.json");
  }
  // Tied models store one matrix under one of two names.
  const bool needs_embed = !tied || has_embed || !has_lm_head;
  const Expected expected(config, needs_embed, !tied || has_lm_head);
  check_quantised_tensors(checkpoint);
  config.dtype = shared_dtype(checkpoint, config, expected);
  if (config.experts) {
    config.experts->f32_router = are_f32({TensorRole::router}, checkpoint, config, expected);
  }
  if (config.hyper) {
    config.hyper->f32_product =
        are_f32({TensorRole::hyper_attn, TensorRole::hyper_ffn, TensorRole::hyper_head}, checkpoint,
                config, expected);
  }
  if (config.indexer && !config.indexer->by_kv_head) {
    config.indexer->f32_weights =
        are_f32({TensorRole::index_weights}, checkpoint, config, expected);
  }
  const ModelWeights weights(checkpoint, config.dtype);
  const QuantConfig quant = read_quant_config(checkpoint);
  check_shapes(checkpoint, weights, expected, quantised_weights(quant, linear_modules(config)));
  config.stored_as = check_stored_weights(weights, config);
  // Callers that compute with the model have all its bytes; partial folders may not.
  if (tied && has_embed && has_lm_head && !checkpoint.is_partial()) {
    check_tied(checkpoint, weight_name(config, TensorRole::embedding), lm_head);
  }
  check_unchanged_values(quant);
  check_no_others(checkpoint, config, expected);
  // transformers saves the end tokens there; the config.json of a chat model often misses one.
  if (const auto ids = read_eos_ids(checkpoint.folder())) config.eos_ids = *ids;
  return config;
}

}  // namespace fp8kv
