#include "model/weights/check_rows.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/families/tensor_table.h"
#include "core/model/tensor_roles.h"

namespace fp8kv {
namespace {

bool is_of_layer(TensorRole role) {
  const RolePart part = role_row(role).part;
  return part != RolePart::embedding && part != RolePart::head;
}

// Whether the config has a tensor with this role: a table with only that row gives one.
bool wants(ModelConfig config, TensorRole role) {
  const TensorRow row{"tensor", {role}};
  config.tensors = {&row, 1};
  return !outer_tensors(config).empty();
}

// Checks the rows of the first layer and of the outer tensors.
void check_rows_of_layer(const ModelConfig& config) {
  std::array<int, kRoleCount> rows{};
  const auto count = [&](const std::vector<ModelTensor>& tensors, bool of_layer) {
    for (const ModelTensor& tensor : tensors) {
      for (const TensorPart& part : tensor.parts) {
        const bool counted = !tensor.is_bias && std::max({tensor.expert, tensor.head, tensor.stream,
                                                          tensor.file}) <= 0;
        if (!counted || is_of_layer(part.role) != of_layer) continue;
        ++rows[static_cast<size_t>(part.role)];
      }
    }
  };
  count(layer_tensors(config, 0), true);
  count(outer_tensors(config), false);
  for (size_t i = 0; i < kRoleCount; ++i) {
    const auto role = static_cast<TensorRole>(i);
    const int found = rows[i], expected = wants(config, role) ? 1 : 0;
    if (found == expected) continue;
    throw Error(cat("the table of tensors of ", config.architecture, ": has ", found, " rows for ",
                    quote(role_row(role).name), " with this config, expected ", expected),
                "rows are in src/config/families; those of layers have '{}' in the name");
  }
}

}  // namespace

// Checks one layer of each kind that has tensors of its own.
void check_rows(const ModelConfig& config) {
  if (config.drafter) return;  // read_drafter_config checks all tensors that are computed with
  std::set<std::tuple<Mixing, FeedForward, bool, bool, bool, bool>> checked;
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    LayerDescription layer = config.layer(index);
    const bool writes = config.writes_cache(index);
    const bool has_ngrams = config.ngrams && config.ngrams->has(index);
    if (!checked
             .insert({layer.mixing, layer.feed_forward, writes, layer.v_is_k, layer.state_beside,
                      has_ngrams})
             .second) {
      continue;
    }
    layer.cache_of = writes ? 0 : -1;
    ModelConfig one = config;
    one.layers = {layer};
    if (has_ngrams) {
      one.ngrams->rows = {config.ngrams->rows_of(index)};
      one.ngrams->layers = {0};
    } else {
      one.ngrams.reset();
    }
    check_rows_of_layer(one);
  }
}

}  // namespace fp8kv
