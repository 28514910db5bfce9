#include "quantize/linear_choice.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/linear_modules.h"
#include "checkpoint/quant_config.h"
#include "config/architectures.h"
#include "config/families/tensor_table.h"
#include "core/model/tensor_roles.h"
#include "scales/write/quant_block.h"

namespace fp8kv {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string module_of(std::string_view tensor) {
  if (tensor.ends_with(kWeight)) tensor.remove_suffix(kWeight.size());
  return std::string(tensor);
}

void check_layout(const Checkpoint& checkpoint, const ModelTensor& tensor) {
  const std::string what =
      cat(quote(checkpoint.folder().string()), ": tensor ", quote(tensor.name), ": ");
  if (is_turned(tensor.layout)) {
    throw Error(cat(what, "is stored with its rows as columns, which no runtime reads in FP8"),
                "serve this model in 16 bit; its KV cache can be FP8: see 'fp8kv calibrate'");
  }
  if (tensor.shape.rank() == 2) return;
  throw Error(cat(what, "has all experts of a layer in one tensor, ", tensor.shape.text(),
                  ", which no runtime reads in FP8"),
              "serve this model in 16 bit; its KV cache can be FP8: see 'fp8kv calibrate'");
}

// Whether one tensor holds the rows of all experts.
bool has_rows_of_all(const ModelConfig& config) {
  return std::any_of(config.tensors.begin(), config.tensors.end(), [](const TensorRow& row) {
    return row.roles.back() == TensorRole::expert_up && row.layout == TensorLayout::rows &&
           row.name.find("{e}") == row.name.npos;
  });
}

// Whether every expert has tensors of its own.
bool has_experts_apart(std::span<const TensorRow> rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const TensorRow& row) { return row.name.find("{e}") != row.name.npos; });
}

// The matrices of `written` that are parts of a tensor with all experts.
std::vector<SplitMatrix> split_matrices(const ModelTensor& tensor,
                                        const std::vector<ModelTensor>& written) {
  std::vector<SplitMatrix> all;
  for (const ModelTensor& one : written) {
    if (one.expert < 0 || one.is_bias) continue;
    for (const TensorPart& part : tensor.parts) {
      if (part.role != one.parts.front().role) continue;
      all.push_back({one.name, one.expert * tensor.shape[1] + part.first_row, one.shape});
    }
  }
  return all;
}

// Returns "re:.*vision_tower\..*" for "model.vision_tower.layers.0.mlp.fc1". The prefix is left
// open, because runtimes and their versions differ in it.
std::string part_pattern(std::string_view name) {
  const std::string_view inner = without_wrappers(name);
  return cat("re:.*", inner.substr(0, inner.find('.')), "\\..*");
}

// The `ignore` entry of a module outside the model's own table: another part, or a layer behind the
// last.
std::string ignored_other(const std::string& module, const ModelConfig& config) {
  const bool in_layers = module.starts_with(cat(config.model_prefix, "layers."));
  return in_layers ? module : part_pattern(module);
}

}  // namespace

void check_unquantised(const Checkpoint& checkpoint) {
  const QuantConfig quant = read_quant_config(checkpoint);
  if (quant.method == QuantMethod::none) return;
  const bool weights = !is_for_cache_alone(quant, checkpoint.tensors());
  throw Error(cat(quote(checkpoint.folder().string()), ": is quantised by ", quote(quant.name()),
                  weights ? " already" : " for its KV cache"),
              weights ? "quantise the model in 16 bit that this one was made from"
                      : cat("quantise the model that this one was made from; --scales ",
                            quote(checkpoint.folder().string()), " brings its scales along"));
}

ModelConfig written_config(const ModelConfig& config) {
  const std::span<const TensorRow> other = other_tensors(config.tensors);
  ModelConfig written = config;
  if (!has_experts_apart(other) || !has_rows_of_all(config)) return written;
  written.tensors = other;
  if (config.other_names.empty()) return written;
  // A row of both tables has the same name in both.
  written.other_names.assign(other.size(), false);
  for (size_t i = 0; i < other.size(); ++i) {
    const auto same = [&](const TensorRow& row) { return row.name == other[i].name; };
    const auto row = std::find_if(config.tensors.begin(), config.tensors.end(), same);
    if (row == config.tensors.end()) continue;
    written.other_names[i] = config.other_names[static_cast<size_t>(row - config.tensors.begin())];
  }
  return written;
}

LinearChoice choose_linears(const Checkpoint& checkpoint, const ModelConfig& config) {
  const ModelConfig as_written = written_config(config);
  const bool takes_apart = as_written.tensors.data() != config.tensors.data();
  LinearChoice choice;
  std::set<std::string> ignore = {"lm_head", config.lm_head};
  std::set<std::string> known;
  const auto add = [&](const std::vector<ModelTensor>& tensors,
                       const std::vector<ModelTensor>& written) {
    for (const ModelTensor& tensor : tensors) {
      known.insert(tensor.name);
      const MatrixUse use = role_row(tensor.parts.front().role).use;
      if (tensor.is_bias || use == MatrixUse::none) continue;
      if (use == MatrixUse::left_alone) {
        ignore.insert(module_of(tensor.name));
      } else if (takes_apart && is_of_all_experts(tensor)) {
        for (SplitMatrix& rows : split_matrices(tensor, written)) {
          choice.quantised.insert(rows.name);
          choice.split[tensor.name].push_back(std::move(rows));
        }
      } else {
        check_layout(checkpoint, tensor);
        choice.quantised.insert(tensor.name);
      }
    }
  };
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    add(layer_tensors(config, layer), layer_tensors(as_written, layer));
  }
  add(outer_tensors(config), {});
  for (const std::string& module : linear_modules(checkpoint.tensors())) {
    if (!known.contains(cat(module, kWeight))) ignore.insert(ignored_other(module, config));
  }
  choice.ignore.assign(ignore.begin(), ignore.end());
  return choice;
}

}  // namespace fp8kv
