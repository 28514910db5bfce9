// Lays out GPTQ's and AWQ's codes, which their files have by columns, in the order that products
// read.
#pragma once

#include <optional>
#include <vector>

#include "base/machine/thread_pool.h"
#include "core/model/quantised_matrix.h"
#include "core/numbers/tensor.h"

namespace fp8kv {

// Whether the groups are those of columns in order, so that the list of groups can be ignored.
bool has_groups_in_order(const QuantisedMatrix& matrix);

// Returns the layout of the same weights with codes along rows, and each row's scales and zero
// points side by side. It has no pointers yet. Returns nothing if no such layout exists or the
// matrix already has it.
std::optional<QuantisedMatrix> form_along_rows(const QuantisedMatrix& matrix);

// Returns the matrix in that layout, in new memory of the old size, which `storage` gets. REQUIRES
// that form_along_rows returns one.
QuantisedMatrix codes_along_rows(ThreadPool& pool, const QuantisedMatrix& matrix,
                                 std::vector<Tensor>& storage);

}  // namespace fp8kv
