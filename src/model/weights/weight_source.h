// Where the weights of a layer come from, and how those get there that files have in another order
// than products want. What they are to the layer is for weights.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "config/families/tensor_table.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// A tensor in the order of its file: numbers of a type to compute with, or, with data that is null,
// what products can have in their place.
struct FoundTensor {
  ConstTensorView view;
  std::optional<QuantisedMatrix> codes = {};
  bool is_decoded = false;  // the view is as_decoded, of a quantised tensor
};

// What a layer is made of. All of it lives as long as the weights.
struct WeightSource {
  // Codes only where may_be_codes.
  std::function<FoundTensor(const ModelTensor& tensor)> find;
  // Memory for what no file has: the addresses of experts, and weights in another order.
  std::function<TensorView(DType dtype, const Shape& shape)> room;
  // The one number of a tensor [1].
  std::function<float(const ModelTensor& tensor)> number;
  Backend* backend = nullptr;  // null: only sizes are asked for, and nothing is written
};

// The number of a tensor [1] of a file.
float number_in(const Checkpoint& checkpoint, const ModelTensor& tensor);

// Whether the layer has another copy of a tensor, and its own memory is not looked at any more.
bool is_copied(const ModelTensor& tensor);

// Whether all that is made of a tensor is rows of it, for products alone.
bool may_be_codes(const ModelTensor& tensor);

// Decodes a quantised tensor, whose `matrix` has pointers, to `to`, which is decoded_tensor.
void decode(const ModelTensor& tensor, const StoredWeight& stored, const QuantisedMatrix& matrix,
            Backend& backend, const TensorView& to);

// Whether part_of_codes can take all parts of the tensor.
bool has_parts(const ModelTensor& tensor, const QuantisedMatrix& matrix);

// A role's rows of a quantised tensor, or those of one expert where the tensor is of all.
QuantisedMatrix part_of_codes(const ModelTensor& tensor, const TensorPart& part, int64_t expert,
                              const QuantisedMatrix& matrix);

// A role's part of the biases of all experts: [experts, rows]
ConstTensorView part_of_biases(const ModelTensor& tensor, const TensorPart& part,
                               const ConstTensorView& view, const WeightSource& source);

// What a role has of a tensor: [rows, columns], or [rows] of a bias.
ConstTensorView part_of(const ModelTensor& tensor, const TensorPart& part,
                        const ConstTensorView& view, const WeightSource& source);

// The matrices that a role has for each head of a tensor TensorLayout::by_head, with their rows as
// columns: [n_heads, columns, rows].
ConstTensorView turned_heads(const ModelTensor& tensor, const TensorPart& part,
                             const ConstTensorView& view, const WeightSource& source);

// Puts what is one head's or one expert's in its row of `rows` [count, ..], which the first makes.
void add_row(const ModelTensor& tensor, int64_t count, const ConstTensorView& from,
             const WeightSource& source, TensorView& rows);

TensorView ones(DType dtype, int64_t count, const WeightSource& source);  // [count]

// Writes the rows of a matrix on the host to `to`, which may be its own data, brought to length 1.
// As torch's normalize: a row of zeros stays one.
void norm_rows(const ConstTensorView& matrix, std::byte* to);

}  // namespace fp8kv
