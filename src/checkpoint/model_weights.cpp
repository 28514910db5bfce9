#include "checkpoint/model_weights.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/quant_config.h"
#include "core/model/tensor_roles.h"
#include "quant/expert_forms.h"
#include "quant/weight_forms.h"

namespace fp8kv {
namespace {

void put(float value, DType dtype, std::string& out) {
  const auto append = [&](auto code) {
    out.append(reinterpret_cast<const char*>(&code), sizeof(code));
  };
  switch (dtype) {
    case DType::f16:
      return append(f16_from_float(value));
    case DType::bf16:
      return append(bf16_from_float(value));
    default:
      return append(value);
  }
}

// Whether quantisers quantise this matrix.
bool is_quantisers(const ModelTensor& tensor) {
  return role_row(tensor.parts.front().role).use == MatrixUse::quantised && !tensor.is_bias &&
         tensor.shape.rank() == 2;
}

std::string module_of(const ModelTensor& tensor) {
  constexpr std::string_view kEnd = ".weight";
  const size_t after = tensor.name.ends_with(kEnd) ? kEnd.size() : 0;
  return tensor.name.substr(0, tensor.name.size() - after);
}

// The names of all modules that have a tensor.
std::vector<std::string> modules_of(const Checkpoint& checkpoint) {
  std::vector<std::string> modules;
  for (const auto& [name, location] : checkpoint.tensors()) {
    std::string module = name.substr(0, std::min(name.rfind('.'), name.size()));
    if (modules.empty() || modules.back() != module) modules.push_back(std::move(module));
  }
  return modules;
}

// Throws unless the modules that the config leaves out are plain, and all others are quantised.
void check_said(const ModelWeights& weights, const ModelTensor& tensor, const Weight& weight) {
  const QuantSettings& said = weights.settings();
  const std::string module = module_of(tensor);
  const LeftOut out = left_out(said, module);
  const std::string folder = quote(weights.checkpoint().folder().string());
  if (weight.stored && out == LeftOut::yes) {
    throw Error(cat(folder, ": tensor ", quote(weight.stored->codes->name), ": is quantised (",
                    weight.stored->form, "), but ", said.left_out_at, " leaves ", quote(module),
                    " as it was"),
                "config.json and the weights are not of the same model");
  }
  if (!weight.stored && out == LeftOut::no && said.all_others && is_quantisers(tensor)) {
    throw Error(
        cat(folder, ": tensor ", quote(tensor.name), ": is ", dtype_name(weight.plain->dtype),
            ", but the quantization_config of config.json "
            "quantises ",
            quote(module), " too"),
        "config.json and the weights are not of the same model, or the list of modules "
        "that are left as they were lacks one");
  }
}

}  // namespace

uint64_t Weight::bytes() const {
  return static_cast<uint64_t>(shape.elements()) * dtype_bytes(dtype);
}

ModelWeights::ModelWeights(const Checkpoint& checkpoint, DType dtype)
    : checkpoint_(checkpoint), dtype_(dtype) {
  const QuantConfig quant = read_quant_config(checkpoint);
  settings_ = read_quant_settings(quant.block, quant.hf_quant);
  groups_ = read_quant_groups(quant.block);
}

std::optional<Weight> ModelWeights::find(const ModelTensor& tensor) const {
  const TensorEntry* entry = checkpoint_.find(tensor.name);
  if (entry && is_compute_dtype(entry->dtype)) {
    return Weight{tensor.name, entry->dtype, entry->shape, entry, std::nullopt};
  }
  if (auto stored = find_stored(tensor)) {
    return Weight{tensor.name, dtype_, tensor.shape, nullptr, std::move(stored)};
  }
  if (!entry) return std::nullopt;
  return Weight{tensor.name, entry->dtype, entry->shape, entry, std::nullopt};
}

std::optional<StoredWeight> ModelWeights::find_stored(const ModelTensor& tensor) const {
  if (tensor.is_bias) return std::nullopt;
  const std::string module = module_of(tensor), source = quote(checkpoint_.folder().string());
  const Shape shape = as_decoded(tensor).shape;
  const auto lookup = [&](const std::string& name) { return checkpoint_.find(name); };
  if (is_of_all_experts(tensor)) {
    return find_stored_experts(module, {shape, is_turned(tensor.layout)}, settings_, lookup,
                               source);
  }
  // Other transposed matrices are refused: no file says whether quantisers transpose them.
  if (tensor.shape.rank() != 2 || tensor.layout == TensorLayout::transposed) return std::nullopt;
  const int64_t bands = tensor.own_blocks ? tensor.groups : 1;
  return find_stored_weight(module, {shape, bands}, settings_, lookup, source);
}

Weight ModelWeights::at(const ModelTensor& tensor) const {
  if (auto weight = find(tensor)) return std::move(*weight);
  const TensorEntry& entry = checkpoint_.at(tensor.name);
  return Weight{tensor.name, entry.dtype, entry.shape, &entry, std::nullopt};
}

std::string ModelWeights::read(const Weight& weight, uint64_t offset, uint64_t length) const {
  if (weight.plain) return checkpoint_.read(weight.plain->name, offset, length);
  std::vector<MappedTensor> mapped;
  const QuantisedMatrix matrix = map(*weight.stored, mapped);
  const auto width = static_cast<uint64_t>(dtype_bytes(weight.dtype));
  std::string bytes;
  for (uint64_t at = offset / width; at < (offset + length) / width; ++at) {
    const auto element = static_cast<int64_t>(at);
    put(stored_value(*weight.stored, matrix, element / matrix.columns, element % matrix.columns),
        weight.dtype, bytes);
  }
  return bytes;
}

void ModelWeights::check_values(const Weight& weight) const {
  if (!weight.stored) return;
  std::vector<MappedTensor> mapped;
  fp8kv::check_values(*weight.stored, map(*weight.stored, mapped),
                      quote(checkpoint_.folder().string()));
}

QuantisedMatrix ModelWeights::map(const StoredWeight& stored,
                                  std::vector<MappedTensor>& mapped) const {
  return matrix_of(stored, [&](const TensorEntry& entry) {
    return mapped.emplace_back(checkpoint_.map(entry.name)).view;
  });
}

ModelTensor decoded_tensor(const ModelTensor& tensor, const StoredWeight& stored) {
  return stored.turned ? tensor : as_decoded(tensor);
}

std::string check_stored_weights(const ModelWeights& weights, const ModelConfig& config) {
  std::set<std::string> forms;
  const auto check = [&](const std::vector<ModelTensor>& tensors) {
    for (const ModelTensor& tensor : tensors) {
      const auto weight = weights.find(tensor);
      if (!weight) continue;
      check_said(weights, tensor, *weight);
      if (!weight->stored) continue;
      check_group_of(weights.groups(), module_of(tensor), *weight->stored,
                     quote(weights.checkpoint().folder().string()));
      forms.insert(form_text(*weight->stored));
    }
  };
  check(outer_tensors(config));
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) check(layer_tensors(config, layer));
  if (!forms.empty()) check_groups_used(weights.groups(), modules_of(weights.checkpoint()));
  return join(std::vector<std::string>(forms.begin(), forms.end()), "; ");
}

}  // namespace fp8kv
