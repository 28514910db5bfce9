// The source of a layer's weights, and the conversion of weights whose files have another order
// than products need. weights.h places them in the layer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "config/families/tensor_table.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// A tensor in the order of its file. `view` has numbers to compute with; if its data is null,
// `codes` has what products read instead.
struct FoundTensor {
  ConstTensorView view;
  std::optional<QuantisedMatrix> codes = {};
  bool is_decoded = false;  // the view is as_decoded, of a quantised tensor
};

// The source of a layer's weights. All of it lives as long as the weights.
struct WeightSource {
  // Finds a tensor; with codes only if may_be_codes.
  std::function<FoundTensor(const ModelTensor& tensor)> find;
  // Memory for contents that no file has: addresses of experts, and weights in another order.
  std::function<TensorView(DType dtype, const Shape& shape)> allocate;
  // The numbers of a small tensor, for the host.
  std::function<std::vector<float>(const ModelTensor& tensor)> numbers;
  Backend* backend = nullptr;  // null: only sizes are asked for, and nothing is written
};

// The numbers of a tensor of a file.
std::vector<float> numbers_in(const Checkpoint& checkpoint, const ModelTensor& tensor);

// Whether the layer uses a copy of the tensor, and no longer reads its own memory.
bool is_copied(const ModelTensor& tensor);

// Whether the layer uses only rows of the tensor, and only in products.
bool may_be_codes(const ModelTensor& tensor);

// Decodes a quantised tensor, whose `matrix` has pointers, to `to`, which has the shape of
// decoded_tensor.
void decode(const ModelTensor& tensor, const StoredWeight& stored, const QuantisedMatrix& matrix,
            Backend& backend, const TensorView& to);

// Whether part_of_codes can take all parts of the tensor.
bool has_parts(const ModelTensor& tensor, const QuantisedMatrix& matrix);

// A role's rows of a quantised tensor; of a tensor for all experts, one expert's rows.
QuantisedMatrix part_of_codes(const ModelTensor& tensor, const TensorPart& part, int64_t expert,
                              const QuantisedMatrix& matrix);

// A role's part of the biases of all experts: [experts, rows]
ConstTensorView part_of_biases(const ModelTensor& tensor, const TensorPart& part,
                               const ConstTensorView& view, const WeightSource& source);

// A role's part of a tensor: [rows, columns], or [rows] for a bias.
ConstTensorView part_of(const ModelTensor& tensor, const TensorPart& part,
                        const ConstTensorView& view, const WeightSource& source);

// A role's matrix of each head, transposed, for a tensor of TensorLayout::by_head:
// [n_heads, columns, rows].
ConstTensorView turned_heads(const ModelTensor& tensor, const TensorPart& part,
                             const ConstTensorView& view, const WeightSource& source);

// Copies one head's or one expert's values into its row of `rows` [count, ..]. The first call makes
// `rows`.
void add_row(const ModelTensor& tensor, int64_t count, const ConstTensorView& from,
             const WeightSource& source, TensorView& rows);

TensorView ones(DType dtype, int64_t count, const WeightSource& source);  // [count]
// The host's numbers.   [count] f32
TensorView constants(std::span<const float> values, const WeightSource& source);

// A choice bias [experts], with `more` experts behind it that are always chosen.
ConstTensorView always_chosen(const ConstTensorView& bias, int64_t more,
                              const WeightSource& source);

// Scales the rows of a matrix on the host to length 1, and writes them to `to`, which may be the
// matrix itself. Like torch's normalize, keeps a row of zeros.
void norm_rows(const ConstTensorView& matrix, std::byte* to);

}  // namespace fp8kv
