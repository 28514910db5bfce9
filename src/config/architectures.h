// The models that this program can compute: a table with a row for each architecture.
#pragma once

#include <span>

#include "config/families/architecture.h"
#include "core/model/config.h"
#include "core/model/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

std::span<const Architecture> architectures();

// The counterpart of a list of tensors, in either direction, for files that store experts the other
// way; empty if there is none.
std::span<const TensorRow> other_tensors(std::span<const TensorRow> tensors);

// The counterpart for files that store the matrices of experts transposed; empty if there are none.
std::span<const TensorRow> turned_tensors(std::span<const TensorRow> tensors);

// The row that config.json names. If it names a larger model, the row of its language model.
// Throws, listing the rows, if config.json names none of them. Throws if model_type belongs to
// another architecture.
const Architecture& architecture_at(const Json& config);

// Throws, naming the config's member, unless all layers are of a kind that the architecture
// supports. By default that is attention to all earlier tokens with the same heads, each layer with
// its own cache. Architectures with `windows` also allow sliding windows.
void check_layers(const Architecture& architecture, const Json& config, const ModelConfig& model);

}  // namespace fp8kv
