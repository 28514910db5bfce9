#include "quant/stored_weight.h"

#include <cmath>

#include "base/error.h"

namespace fp8kv {
namespace {

std::string scale_text(const StoredWeight& weight) {
  const QuantisedMatrix& matrix = weight.matrix;
  if (*weight.scales_for != 0) return cat("a scale for ", weight.scales_for);
  const bool by_row = matrix.row_step > 0, by_group = matrix.n_groups > 1;
  if (!by_row && !by_group) return "one scale";
  if (matrix.block_rows > 1) {
    return cat("a scale for each ", matrix.block_rows, " x ", matrix.block_columns);
  }
  if (!by_group) return "a scale for each row";
  return cat("a scale for each ", matrix.block_columns, " columns of a row");
}

void check_scale(float scale, const TensorEntry& entry, int64_t at, const std::string& source) {
  if (std::isfinite(scale)) return;
  fail(source, ": tensor ", quote(entry.name), ": element ", at, " is ", scale,
       ", expected a finite scale");
}

void check_groups(const StoredWeight& weight, const QuantisedMatrix& matrix,
                  const std::string& source) {
  for (int64_t c = 0; c < matrix.columns; ++c) {
    const int64_t group = matrix.groups[c];
    if (group >= 0 && group < matrix.n_groups) continue;
    fail(source, ": tensor ", quote(weight.groups->name), ": element ", c, " is ", group,
         ", expected a group from 0 to ", matrix.n_groups - 1);
  }
}

}  // namespace

std::vector<const TensorEntry*> tensors_of(const StoredWeight& weight) {
  std::vector<const TensorEntry*> tensors;
  for (const TensorEntry* const each :
       {weight.codes, weight.scales, weight.zeros, weight.groups, weight.overall}) {
    if (each != nullptr) tensors.push_back(each);
  }
  return tensors;
}

QuantisedMatrix matrix_of(const StoredWeight& weight,
                          const std::function<ConstTensorView(const TensorEntry&)>& find) {
  const auto data = [&](const TensorEntry* entry) -> const std::byte* {
    return entry == nullptr ? nullptr : find(*entry).data;
  };
  QuantisedMatrix matrix = weight.matrix;
  matrix.codes = data(weight.codes);
  matrix.scales = data(weight.scales);
  matrix.zeros = data(weight.zeros);
  matrix.groups = reinterpret_cast<const int32_t*>(data(weight.groups));
  matrix.overall = reinterpret_cast<const float*>(data(weight.overall));
  return matrix;
}

std::string form_text(const StoredWeight& weight) {
  return cat(weight.form, ", ", scale_text(weight));
}

void check_values(const StoredWeight& weight, const QuantisedMatrix& matrix,
                  const std::string& source) {
  if (matrix.groups != nullptr) check_groups(weight, matrix, source);
  if (matrix.overall != nullptr) {
    check_scale(*matrix.overall, *weight.overall, 0, source);
    if (matrix.divides && *matrix.overall == 0) {
      fail(source, ": tensor ", quote(weight.overall->name),
           ": is 0, which all scales are divided "
           "by, expected another number");
    }
  }
  QuantisedMatrix each = matrix;  // every scale once, in the order of its tensor
  each.overall = nullptr;
  each.block_rows = 1;
  each.row_step = 1;
  const int64_t count = weight.scales->shape.elements();
  for (int64_t at = 0; at < count; ++at) {
    check_scale(scale_value(each, at, 0), *weight.scales, at, source);
  }
}

}  // namespace fp8kv
