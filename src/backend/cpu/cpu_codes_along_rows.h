// Codes that GPTQ's and AWQ's files have by columns, in the order in which products read weights.
#pragma once

#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "core/quantised_matrix.h"
#include "core/tensor.h"

namespace fp8kv {

// Whether groups are those of columns in their order, as if there were no list of them.
bool has_groups_in_order(const QuantisedMatrix& matrix);

// How the same weights lie with codes along rows, each row's scales and zero points side by side:
// without pointers. Nothing where there is no such order, or the matrix has it.
std::optional<QuantisedMatrix> form_along_rows(const QuantisedMatrix& matrix);

// The matrix in that form, in new memory, which `storage` gets, of the size of the old.
// REQUIRES that form_along_rows has one.
QuantisedMatrix codes_along_rows(ThreadPool& pool, const QuantisedMatrix& matrix,
                                 std::vector<Tensor>& storage);

}  // namespace fp8kv
