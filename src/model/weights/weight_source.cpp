#include "model/weights/weight_source.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/model/tensor_roles.h"
#include "core/numbers/half.h"
#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

// A part's rows of a weight or bias whose tensor has more rows.
ConstTensorView rows_of(const ConstTensorView& view, const TensorPart& part) {
  const bool is_vector = view.shape.rank() == 4;  // see VectorForm::inner
  if (is_vector) return {view.data, view.dtype, Shape{part.rows}};
  const int64_t width = view.shape.elements() / view.shape[0];
  const Shape shape = view.shape.rank() == 1 ? Shape{part.rows} : Shape{part.rows, width};
  const auto row_bytes = view.bytes() / static_cast<size_t>(view.shape[0]);
  return {view.data + static_cast<size_t>(part.first_row) * row_bytes, view.dtype, shape};
}

// The elements of a role's rows, in the order that products read.
ConstTensorView arranged(const ConstTensorView& from, int64_t first, Steps steps,
                         const Shape& order, const Shape& shape, const WeightSource& source) {
  const TensorView to = source.allocate(from.dtype, shape);
  const auto skipped = static_cast<size_t>(first) * dtype_bytes(from.dtype);
  const ConstTensorView rest(from.data + skipped, from.dtype, {from.shape.elements() - first});
  if (source.backend != nullptr) source.backend->arrange(rest, steps, reshaped(to, order));
  return to;
}

bool is_in_turn(TensorLayout layout) {
  return layout == TensorLayout::in_turn || layout == TensorLayout::columns_in_turn;
}

// A role's place among the parts whose rows take turns; all have equally many rows.
int64_t turn_of(const TensorPart& part) {
  return part.first_row / part.rows;
}

// Experts whose rows follow one another in the tensor; 1 if it is not of several experts.
int64_t experts_in(const ModelTensor& tensor) {
  return tensor.shape.rank() == 3 ? tensor.shape[0] : 1;
}

float value_at(const ConstTensorView& view, int64_t i) {
  switch (view.dtype) {
    case DType::f16:
      return f16_to_float(view.as<uint16_t>()[i]);
    case DType::bf16:
      return bf16_to_float(view.as<uint16_t>()[i]);
    default:
      return view.as<float>()[i];
  }
}

void put_at(std::byte* to, DType dtype, int64_t i, float value) {
  switch (dtype) {
    case DType::f16:
      reinterpret_cast<uint16_t*>(to)[i] = f16_from_float(value);
      return;
    case DType::bf16:
      reinterpret_cast<uint16_t*>(to)[i] = bf16_from_float(value);
      return;
    default:
      reinterpret_cast<float*>(to)[i] = value;
  }
}

void norm_row(const ConstTensorView& row, std::byte* to) {
  constexpr double kLeast = 1e-12;
  double squares = 0;
  for (int64_t i = 0; i < row.shape[0]; ++i) {
    squares += double{value_at(row, i)} * double{value_at(row, i)};
  }
  const double length = std::max(std::sqrt(squares), kLeast);
  for (int64_t i = 0; i < row.shape[0]; ++i) {
    put_at(to, row.dtype, i, static_cast<float>(double{value_at(row, i)} / length));
  }
}

// Whether these rows can be a matrix of their own. Either they are whole blocks of rows, the last
// perhaps cut short by the matrix's end, or they are a part of one block.
bool may_be_part(const QuantisedMatrix& matrix, int64_t begin, int64_t end) {
  const bool along_rows = matrix.codes_as <= WeightCodes::words;
  if (!along_rows || matrix.zeros_as == ZeroPoints::words_down) {
    return may_be_cut(matrix, begin) && may_be_cut(matrix, end);
  }
  const bool in_one_block = begin / matrix.block_rows == (end - 1) / matrix.block_rows;
  return in_one_block ||
         (may_be_cut(matrix, begin) && (end == matrix.rows || may_be_cut(matrix, end)));
}

}  // namespace

bool is_copied(const ModelTensor& tensor) {
  switch (tensor.layout) {
    case TensorLayout::rows:
      return tensor.head >= 0 || (tensor.is_bias && tensor.expert >= 0);
    case TensorLayout::transposed:
      return !tensor.is_bias;
    default:
      return true;
  }
}

void decode(const ModelTensor& tensor, const StoredWeight& stored, const QuantisedMatrix& matrix,
            Backend& backend, const TensorView& to) {
  const int64_t columns = matrix.columns;
  if (stored.turned || !is_in_turn(tensor.layout)) {
    const size_t bytes = to.bytes() / static_cast<size_t>(stored.bands);
    for (int64_t band = 0; band < stored.bands; ++band) {
      backend.decode_weights(
          band_of(stored, matrix, band),
          {to.data + static_cast<size_t>(band) * bytes, to.dtype, Shape{matrix.rows, columns}});
    }
    return;
  }
  std::byte* at = to.data;
  for (int64_t expert = 0; expert < experts_in(tensor); ++expert) {
    for (const TensorPart& part : tensor.parts) {
      const TensorView rows{at, to.dtype, Shape{part.rows, columns}};
      backend.decode_weights(part_of_codes(tensor, part, expert, matrix), rows);
      at += rows.bytes();
    }
  }
}

bool has_parts(const ModelTensor& tensor, const QuantisedMatrix& matrix) {
  const int64_t experts = experts_in(tensor), rows = matrix.rows / experts;
  if (is_in_turn(tensor.layout) && !may_be_sorted(matrix)) return false;
  for (int64_t first = 0; first < matrix.rows; first += rows) {
    for (const TensorPart& part : tensor.parts) {
      const int64_t begin = first + part.first_row, end = begin + part.rows;
      if (!may_be_part(matrix, begin, end)) return false;
    }
  }
  return true;
}

QuantisedMatrix part_of_codes(const ModelTensor& tensor, const TensorPart& part, int64_t expert,
                              const QuantisedMatrix& matrix) {
  const int64_t rows = matrix.rows / experts_in(tensor);
  if (!is_in_turn(tensor.layout)) {
    return fp8kv::rows_of(matrix, expert * rows + part.first_row, part.rows);
  }
  return every_row(fp8kv::rows_of(matrix, expert * rows, rows), turn_of(part),
                   static_cast<int64_t>(tensor.parts.size()));
}

ConstTensorView part_of_biases(const ModelTensor& tensor, const TensorPart& part,
                               const ConstTensorView& view, const WeightSource& source) {
  if (tensor.parts.size() == 1) return view;
  const bool in_turn = is_in_turn(tensor.layout);
  const Shape shape{view.shape[0], part.rows};
  const Steps steps{view.shape[1], in_turn ? static_cast<int64_t>(tensor.parts.size()) : 1};
  return arranged(view, in_turn ? turn_of(part) : part.first_row, steps, shape, shape, source);
}

std::vector<float> numbers_in(const Checkpoint& checkpoint, const ModelTensor& tensor) {
  const MappedTensor mapped = checkpoint.map(tensor.name);
  std::vector<float> numbers;
  for (int64_t i = 0; i < mapped.view.shape.elements(); ++i) {
    numbers.push_back(value_at(mapped.view, i));
  }
  return numbers;
}

bool may_be_codes(const ModelTensor& tensor) {
  // k_up, v_up and o_down are multiplied head by head, and k_up's heads are transposed.
  const auto is_of_products = [](const TensorPart& part) {
    const TensorRole role = part.role;
    if (role == TensorRole::k_up || role == TensorRole::v_up || role == TensorRole::o_down) {
      return false;
    }
    return role == TensorRole::lm_head || role_row(role).use == MatrixUse::quantised;
  };
  return !tensor.is_bias && !is_copied(as_decoded(tensor)) &&
         std::all_of(tensor.parts.begin(), tensor.parts.end(), is_of_products);
}

ConstTensorView part_of(const ModelTensor& tensor, const TensorPart& part,
                        const ConstTensorView& view, const WeightSource& source) {
  if (tensor.groups > 0) {
    const int64_t width = view.shape.elements() / view.shape[0];
    const int64_t rows = part.rows / tensor.groups, all = view.shape[0] / tensor.groups;
    return arranged(view, part.first_row / tensor.groups * width, {all * width, 1},
                    {tensor.groups, rows * width}, rows_of(view, part).shape, source);
  }
  const auto roles = static_cast<int64_t>(tensor.parts.size());
  if (tensor.layout == TensorLayout::transposed && !tensor.is_bias) {
    const Shape shape{part.rows, view.shape[0]};
    return arranged(view, part.first_row, {1, view.shape[1]}, shape, shape, source);
  }
  if (tensor.layout == TensorLayout::columns_in_turn && !tensor.is_bias) {
    const Shape shape{part.rows, view.shape[0]};
    return arranged(view, turn_of(part), {roles, view.shape[1]}, shape, shape, source);
  }
  if (is_in_turn(tensor.layout)) {
    const int64_t width = tensor.is_bias ? 1 : view.shape[1];
    return arranged(view, turn_of(part) * width, {roles * width, 1}, {part.rows, width},
                    rows_of(view, part).shape, source);
  }
  return rows_of(view, part);
}

ConstTensorView turned_heads(const ModelTensor& tensor, const TensorPart& part,
                             const ConstTensorView& view, const WeightSource& source) {
  const int64_t heads = tensor.groups, width = view.shape[1];
  const int64_t rows = part.rows / heads, all = view.shape[0] / heads;
  const TensorView to = source.allocate(view.dtype, Shape{heads, width, rows});
  if (source.backend == nullptr) return to;
  const size_t bytes = to.bytes() / static_cast<size_t>(heads);
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = (head * all + part.first_row / heads) * width;
    const ConstTensorView from(view.data + static_cast<size_t>(first) * dtype_bytes(view.dtype),
                               view.dtype, {view.shape.elements() - first});
    source.backend->arrange(from, {1, width},
                            {to.data + static_cast<size_t>(head) * bytes, to.dtype, {width, rows}});
  }
  return to;
}

void add_row(const ModelTensor& tensor, int64_t count, const ConstTensorView& from,
             const WeightSource& source, TensorView& rows) {
  const int64_t size = from.shape.elements(), index = std::max(tensor.head, tensor.expert);
  if (index == 0) rows = source.allocate(from.dtype, {count, size});
  const auto before = static_cast<size_t>(index) * from.bytes();
  const TensorView row{rows.data + before, from.dtype, Shape{1, size}};
  if (source.backend != nullptr) source.backend->arrange(from, {size, 1}, row);
}

TensorView ones(DType dtype, int64_t count, const WeightSource& source) {
  const TensorView to = source.allocate(dtype, Shape{count});
  if (source.backend == nullptr) return to;
  std::vector<std::byte> host(to.bytes());
  for (int64_t i = 0; i < count; ++i) put_at(host.data(), dtype, i, 1.0f);
  source.backend->copy_in(to, {host.data(), dtype, to.shape});
  return to;
}

TensorView constants(std::span<const float> values, const WeightSource& source) {
  const Shape shape{std::ssize(values)};
  const TensorView to = source.allocate(DType::f32, shape);
  if (source.backend != nullptr) source.backend->copy_in(to, host_view(values, shape));
  return to;
}

ConstTensorView always_chosen(const ConstTensorView& bias, int64_t more,
                              const WeightSource& source) {
  const int64_t count = bias.shape[0];
  const TensorView all = source.allocate(bias.dtype, Shape{count + more});
  if (source.backend == nullptr) return all;
  source.backend->arrange(bias, {count, 1}, {all.data, all.dtype, Shape{1, count}});
  std::vector<std::byte> host(static_cast<size_t>(more) * dtype_bytes(bias.dtype));
  for (int64_t i = 0; i < more; ++i) {
    put_at(host.data(), bias.dtype, i, std::numeric_limits<float>::infinity());
  }
  source.backend->copy_in({all.data + bias.bytes(), all.dtype, Shape{more}},
                          {host.data(), all.dtype, Shape{more}});
  return all;
}

void norm_rows(const ConstTensorView& matrix, std::byte* to) {
  const Shape row{matrix.shape[1]};
  const size_t row_bytes = matrix.bytes() / static_cast<size_t>(matrix.shape[0]);
  for (size_t at = 0; at < matrix.bytes(); at += row_bytes) {
    norm_row({matrix.data + at, matrix.dtype, row}, to + at);
  }
}

}  // namespace fp8kv
