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
  if (weight.bands > 1) {
    return cat("a scale for each ", matrix.block_rows, " x ", matrix.block_columns, " of each of ",
               weight.bands, " parts");
  }
  if (matrix.block_rows > 1) {
    return cat("a scale for each ", matrix.block_rows, " x ", matrix.block_columns);
  }
  if (!by_group) return "a scale for each row";
  return cat("a scale for each ", matrix.block_columns, " columns of a row");
}

// AutoRound gives integer scales the sign of the value that is farthest from zero.
bool may_be_negative(const QuantisedMatrix& matrix) {
  return matrix.codes_as == WeightCodes::words || matrix.codes_as == WeightCodes::words_down ||
         matrix.codes_as == WeightCodes::words_shuffled;
}

void check_scale(float scale, const TensorEntry& entry, int64_t at, const std::string& source,
                 bool any_sign) {
  if (std::isfinite(scale) && (any_sign || scale >= 0)) return;
  fail(source, ": tensor ", quote(entry.name), ": element ", at, " is ", scale,
       any_sign ? ", expected a finite scale" : ", expected a finite scale of 0 or more");
}

float largest_code(const QuantisedMatrix& matrix) {
  switch (matrix.codes_as) {
    case WeightCodes::e4m3fn:
      return fp8_spec(Fp8Format::e4m3fn).max;
    case WeightCodes::e4m3fnuz:
      return fp8_spec(Fp8Format::e4m3fnuz).max;
    case WeightCodes::e5m2:
    case WeightCodes::e5m2fnuz:
      return fp8_spec(Fp8Format::e5m2).max;
    case WeightCodes::i8:
      return 128;
    case WeightCodes::e2m1:
    case WeightCodes::e2m1_down:
      return 6;
    default:
      return static_cast<float>(1 << matrix.bits);
  }
}

float overall_scale(const QuantisedMatrix& matrix, float scale) {
  if (matrix.overall == nullptr) return scale;
  return matrix.divides ? scale / *matrix.overall : scale * *matrix.overall;
}

void check_range(float scale, const StoredWeight& weight, int64_t at, const std::string& source) {
  if (std::isfinite(scale * largest_code(weight.matrix))) return;
  fail(source, ": tensor ", quote(weight.scales->name), ": element ", at, " makes a scale of ",
       scale, ", which times the largest code, ", largest_code(weight.matrix),
       ", is no finite number");
}

// Throws if a scale is 0 but its codes are not. REQUIRES that some scale is 0, since every element
// is checked.   matrix: a band, and `first_scale` the number of its first scale
void check_zero_scales(const StoredWeight& weight, const QuantisedMatrix& matrix,
                       int64_t first_scale, const std::string& source) {
  for (int64_t r = 0; r < matrix.rows; ++r) {
    for (int64_t c = 0; c < matrix.columns; ++c) {
      const int64_t group = group_of(matrix, c);
      if (scale_value(matrix, r, group) != 0) continue;
      if (code_value(matrix, r, c) == zero_value(matrix, r, group)) continue;
      const int64_t at =
          first_scale + r / matrix.block_rows * matrix.row_step + group * matrix.group_step;
      fail(source, ": tensor ", quote(weight.scales->name), ": element ", at,
           " is 0, which makes weights 0 whose codes are not");
    }
  }
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

QuantisedMatrix band_of(const StoredWeight& weight, const QuantisedMatrix& matrix, int64_t band) {
  if (weight.bands == 1) return matrix;
  const int64_t rows_of_blocks = (matrix.rows + matrix.block_rows - 1) / matrix.block_rows;
  const auto skip = [&](const void* data, int64_t bytes) {
    return static_cast<const std::byte*>(data) + band * bytes;
  };
  QuantisedMatrix own = matrix;
  own.codes = skip(matrix.codes, matrix.rows * matrix.columns);
  own.scales = skip(matrix.scales, rows_of_blocks * matrix.row_step *
                                       static_cast<int64_t>(dtype_bytes(matrix.scale_dtype)));
  return own;
}

float stored_value(const StoredWeight& weight, const QuantisedMatrix& matrix, int64_t row,
                   int64_t column) {
  return weight_value(band_of(weight, matrix, row / matrix.rows), row % matrix.rows, column);
}

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
    check_scale(*matrix.overall, *weight.overall, 0, source, false);
    if (*matrix.overall == 0) {
      fail(source, ": tensor ", quote(weight.overall->name), ": is 0, which all scales are ",
           matrix.divides ? "divided" : "multiplied", " by, expected another number");
    }
  }
  QuantisedMatrix each = matrix;  // visits every scale once, in the order of its tensor
  each.overall = nullptr;
  each.block_rows = 1;
  each.row_step = 1;
  const int64_t count = weight.scales->shape.elements();
  bool any_zero = false;
  for (int64_t at = 0; at < count; ++at) {
    const float scale = scale_value(each, at, 0);
    check_scale(scale, *weight.scales, at, source, may_be_negative(matrix));
    check_range(overall_scale(matrix, scale), weight, at, source);
    any_zero |= scale == 0;
  }
  if (!any_zero || matrix.scale_dtype == DType::f8_e4m3) return;
  for (int64_t band = 0; band < weight.bands; ++band) {
    check_zero_scales(weight, band_of(weight, matrix, band), band * (count / weight.bands), source);
  }
}

}  // namespace fp8kv
