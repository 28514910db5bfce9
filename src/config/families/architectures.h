// Which models this tool can compute with: a table, one row each.
#pragma once

#include <span>

#include "config/families/architecture.h"
#include "core/config.h"
#include "core/tensor_row.h"
#include "json/json.h"

namespace fp8kv {

std::span<const Architecture> architectures();

// What files have in place of an architecture's tensors, or of those that it has in their place,
// where experts lie otherwise; empty: nothing.
std::span<const TensorRow> other_tensors(std::span<const TensorRow> tensors);

// The row that config.json names, or that of its language model where it names a model with more
// parts. Throws, listing the rows, where it names none of them, and where its model_type is of
// another architecture.
const Architecture& architecture_at(const Json& config);

// Throws, naming the member of the config, unless all layers are alike: attention to every token
// before, or to a sliding window of them where the architecture may have windows, with the same
// heads and a cache of their own.
void check_layers(const Architecture& architecture, const Json& config, const ModelConfig& model);

}  // namespace fp8kv
