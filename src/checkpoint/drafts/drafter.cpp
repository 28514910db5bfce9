#include "checkpoint/drafts/drafter.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "checkpoint/drafts/stored_tensor.h"
#include "checkpoint/model_weights.h"
#include "checkpoint/quant_config.h"
#include "config/drafter_config.h"

namespace fp8kv {
namespace {

constexpr std::string_view kLayerNames[] = {"layers.0.", "midlayer."};
constexpr std::string_view kPrefixes[] = {"", "model."};

// The names of a drafter's tensors; nullopt if the folder has none.
std::optional<DrafterNames> find_names(const TensorMap& tensors) {
  const auto find = [&](const std::string& name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second.entry;
  };
  for (const std::string_view prefix : kPrefixes) {
    const TensorEntry* product = find(cat(prefix, "fc.weight"));
    if (!product || product->shape.rank() != 2) continue;
    for (const std::string_view layer : kLayerNames) {
      const TensorEntry* k = find(cat(prefix, layer, "self_attn.k_proj.weight"));
      if (!k || k->shape.rank() != 2 || k->shape[1] != 2 * product->shape[0]) continue;
      return DrafterNames{std::string(prefix), layer == kLayerNames[0],
                          find(cat(prefix, "embed_tokens.weight")) != nullptr};
    }
  }
  return std::nullopt;
}

std::vector<ModelTensor> all_tensors(const ModelConfig& config) {
  std::vector<ModelTensor> tensors = outer_tensors(config);
  for (ModelTensor& tensor : layer_tensors(config, 0)) tensors.push_back(std::move(tensor));
  return tensors;
}

// Throws for norms of the hidden states, which some drafters have before `fc`.
void check_states(const Checkpoint& checkpoint, const DrafterNames& names) {
  constexpr std::string_view kNorms[] = {"fc_norm", "input_norm.", "aux_norm"};
  for (const auto& [name, location] : checkpoint.tensors()) {
    for (const std::string_view norm : kNorms) {
      if (!name.starts_with(names.prefix + std::string(norm))) continue;
      throw Error(cat("tensor ", quote(name), " in ", quote(checkpoint.folder().string()),
                      ": norms hidden states before 'fc', which is not computed here"),
                  kDraftNotMeasured);
    }
  }
}

// Throws for a weight of attention that nothing reads, such as a norm of K.
void check_attention(const Checkpoint& checkpoint, const DrafterNames& names,
                     const std::vector<ModelTensor>& tensors) {
  const std::string attention =
      cat(names.prefix, names.numbered ? kLayerNames[0] : kLayerNames[1], "self_attn.");
  for (const auto& [name, location] : checkpoint.tensors()) {
    const bool weight = name.ends_with(".weight") || name.ends_with(".bias");
    if (!weight || !name.starts_with(attention) || name.starts_with(attention + "o_proj."))
      continue;
    if (std::any_of(tensors.begin(), tensors.end(),
                    [&](const ModelTensor& tensor) { return tensor.name == name; })) {
      continue;
    }
    throw Error(cat("tensor ", quote(name), " in ", quote(checkpoint.folder().string()),
                    ": is not a part of a Llama layer"),
                kDraftNotMeasured);
  }
}

}  // namespace

bool is_drafter(const TensorMap& tensors) {
  return find_names(tensors).has_value();
}

ModelConfig read_drafter_config(const Checkpoint& checkpoint) {
  const std::optional<DrafterNames> names = find_names(checkpoint.tensors());
  if (!names) {
    throw Error(cat(quote(checkpoint.folder().string()),
                    ": is no drafter that is known here (EAGLE-3): has no tensor 'fc.weight' with "
                    "a layer 'layers.0' or 'midlayer' of twice its width"),
                "pass the folder of the drafter, and its model with --target");
  }
  ModelConfig config = parse_drafter_config(checkpoint.config(), *names);
  const std::vector<ModelTensor> tensors = all_tensors(config);
  const TensorEntry& product = checkpoint.at(tensors.front().name);
  if (is_compute_dtype(product.dtype)) config.dtype = product.dtype;
  const ModelWeights weights(checkpoint, config.dtype);
  for (const ModelTensor& tensor : tensors) check_stored(weights, tensor);
  check_states(checkpoint, *names);
  check_attention(checkpoint, *names, tensors);
  return config;
}

std::vector<int64_t> hidden_layers_of(const ModelConfig& drafter, const ModelConfig& target) {
  const int64_t n = target.n_layers();
  const std::vector<int64_t>& listed = drafter.drafter.value().hidden_layers;
  return listed.empty() ? std::vector<int64_t>{2, n / 2, n - 3} : listed;
}

void check_target(const ModelConfig& drafter, const ModelConfig& target, const std::string& where) {
  constexpr const char* kOther = "pass the model that the drafter was trained for";
  const DrafterConfig& own = drafter.drafter.value();
  if (target.dim != own.target_dim) {
    throw Error(cat(where, ": its hidden states have ", target.dim,
                    " elements, but the drafter reads states of ", own.target_dim),
                kOther);
  }
  const std::vector<int64_t> layers = hidden_layers_of(drafter, target);
  const bool ascending = layers[0] < layers[1] && layers[1] < layers[2];
  if (!ascending || layers.front() < 0 || layers.back() > target.n_layers()) {
    throw Error(cat(where, ": has ", count_of(static_cast<uint64_t>(target.n_layers()), "layer"),
                    ", but the drafter reads the inputs of layers ", layers[0], ", ", layers[1],
                    " and ", layers[2]),
                kOther);
  }
  if (drafter.vocab_size != target.vocab_size) {
    throw Error(cat(where, ": has a vocabulary of ", target.vocab_size,
                    " tokens, but the drafter one of ", drafter.vocab_size),
                kOther);
  }
  const bool owns_embedding = drafter.tensors.front().roles.front() == TensorRole::embedding;
  const bool one_stream = target.stream_dim() == target.dim;
  if (!one_stream || (!owns_embedding && (target.embed_dim > 0 || target.dim != own.dim))) {
    throw Error(cat(where, ": drafts for ", target.architecture, " are not computed here"),
                kDraftNotMeasured);
  }
}

}  // namespace fp8kv
