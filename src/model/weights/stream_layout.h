// The places of a streamed layer's tensors in a buffer of the device, and the pieces in which they
// are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/model_weights.h"
#include "core/model/config.h"
#include "files/block_file.h"
#include "model/weights/weights.h"

namespace fp8kv {

// A model whose layers are streamed.
struct StreamSource {
  const ModelWeights& weights;
  const ModelConfig& config;
};

// A layer to compute with, or a part of one.
struct StreamedLayer {
  int64_t index = 0;
  LayerPart part = LayerPart::whole;
};

// A tensor in its file and in a buffer.
struct StreamPlace {
  size_t shard;
  const TensorEntry* entry;
  uint64_t at;  // in the buffer
  RowOrder rows = {};
};

// A layer's tensors in the order of their files, followed by room for WeightSource.
struct StreamLayout {
  std::vector<StreamPlace> places;
  uint64_t region_at = 0;
  uint64_t bytes = 0;
};

// Memory of a buffer from `at` on, given out piece after piece.
struct BumpAllocator {
  std::byte* buffer;
  uint64_t at;

  TensorView take(DType dtype, const Shape& shape);
};

// A part of one read: a whole tensor beside its neighbours in the file, or a part of one tensor.
// Rows that the file has in another order are pieces of their own.
struct StreamPiece {
  const std::string* tensor;
  uint64_t in_block;
  uint64_t at;  // in the buffer
  size_t bytes;
};

struct StreamBlock {
  std::shared_ptr<const BlockFile> file;  // null: not opened yet
  size_t shard = 0;
  uint64_t offset = 0;
  size_t bytes = 0;
  std::vector<StreamPiece> pieces;
};

StreamLayout layout_of(const StreamSource& model, const StreamedLayer& layer);

// Cuts a layout into reads: in the order of the files, neighbours together, at most `block_bytes`
// each.
std::vector<StreamBlock> blocks_of(const StreamLayout& layout, size_t block_bytes);

// Finds a weight in the memory of the computation: as `find_file` returns it, or decoded into
// memory from `take`. `backend` null: only sizes are asked for.
template <typename FindFile, typename Take>
FoundTensor find_weight(const ModelTensor& tensor, const Weight& weight, Backend* backend,
                        const FindFile& find_file, const Take& take) {
  if (weight.plain) return {find_file(*weight.plain)};
  const QuantisedMatrix matrix = matrix_of(*weight.stored, find_file);
  const TensorView decoded = take(weight.dtype, decoded_tensor(tensor, *weight.stored).shape);
  if (backend != nullptr) decode(tensor, *weight.stored, matrix, *backend, decoded);
  return {decoded, {}, !weight.stored->turned};
}

// The weights of a layer whose tensors are in the buffer of `region`, where `layout` puts them.
// `backend` null: only sizes are asked for, and no contents are read.
LayerWeights weights_in(const StreamSource& model, const StreamedLayer& layer,
                        const StreamLayout& layout, Backend* backend, BumpAllocator& region);

}  // namespace fp8kv
