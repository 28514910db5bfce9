#include "quant/weight_search.h"

#include <vector>

#include "base/error.h"

namespace fp8kv {

const TensorEntry& WeightSearch::at(std::span<const char* const> suffixes,
                                    const TensorEntry& beside) const {
  std::vector<std::string> names;
  for (const char* const suffix : suffixes) {
    if (const TensorEntry* entry = find(suffix)) return *entry;
    names.push_back(quote(module_ + suffix));
  }
  throw Error(cat(where(beside), "is ", dtype_name(beside.dtype), ", and there is no ",
                  join(names, " or "), " beside it"),
              "a quantised weight is nothing without its scales: fetch all files of the model");
}

void WeightSearch::refuse_shape(const TensorEntry& entry, const std::string& expected) const {
  fail(where(entry), "has the shape ", entry.shape.text(), ", expected ", expected,
       " for a weight of ", shape().text());
}

void WeightSearch::check_shape(const TensorEntry& entry, const Shape& expected) const {
  if (entry.shape != expected) refuse_shape(entry, expected.text());
}

void WeightSearch::check_dtype(const TensorEntry& entry, DType expected) const {
  if (entry.dtype == expected) return;
  fail(where(entry), "is ", dtype_name(entry.dtype), ", expected ", dtype_name(expected));
}

void WeightSearch::check_scale_dtype(const TensorEntry& entry) const {
  if (is_compute_dtype(entry.dtype)) return;
  fail(where(entry), "is ", dtype_name(entry.dtype), ", expected F32, F16 or BF16");
}

StoredWeight WeightSearch::start(const char* form, const TensorEntry& codes) const {
  StoredWeight out;
  out.form = form;
  out.codes = &codes;
  out.matrix.rows = rows();
  out.matrix.columns = columns();
  return out;
}

void WeightSearch::set_groups(const TensorEntry& scales, int64_t groups, StoredWeight& out) const {
  if (groups < 1 || columns() % groups != 0) {
    fail(where(scales), "has ", groups, " groups, which do not divide the ", columns(),
         " columns of the weight");
  }
  out.matrix.n_groups = groups;
  out.matrix.block_columns = columns() / groups;
}

void WeightSearch::check_group_size(const StoredWeight& found) const {
  const QuantisedMatrix& matrix = found.matrix;
  const int64_t size = settings_.group_columns;
  if (size == 0 || matrix.columns % size == 0 || matrix.block_rows != 1) return;
  if (found.groups != nullptr || matrix.n_groups == 1) return;
  if (matrix.n_groups != parts_of(matrix.columns, size)) return;
  fail(where(*found.scales), "has ", matrix.n_groups, " groups, of ", size,
       " columns as config.json says, which do not divide the ", matrix.columns,
       " columns of the weight");
}

std::string WeightSearch::where(const TensorEntry& entry) const {
  return cat(source_, ": tensor ", quote(entry.name), ": ");
}

WeightCodes byte_codes(DType dtype) {
  switch (dtype) {
    case DType::f8_e4m3:
      return WeightCodes::e4m3fn;
    case DType::f8_e4m3fnuz:
      return WeightCodes::e4m3fnuz;
    case DType::f8_e5m2:
      return WeightCodes::e5m2;
    case DType::f8_e5m2fnuz:
      return WeightCodes::e5m2fnuz;
    default:
      return WeightCodes::i8;
  }
}

void set_blocks(int64_t block_rows, int64_t block_columns, int64_t across, StoredWeight& out) {
  out.matrix.block_rows = block_rows;
  out.matrix.block_columns = block_columns;
  out.matrix.row_step = across;
  out.matrix.group_step = 1;
  out.matrix.n_groups = across;
}

}  // namespace fp8kv
