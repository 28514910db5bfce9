// Rows of the embedding straight from its file, for devices that would otherwise hold a table of
// which a batch needs a few rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "files/file.h"

namespace fp8kv {

class EmbeddingRows {
 public:
  // REQUIRES the checkpoint to have passed read_model_config.
  EmbeddingRows(const Checkpoint& checkpoint, const ModelConfig& config);

  // rows[i] = the embedding of ids[i], each read once.   ids [n], below vocab_size; rows [n, dim]
  // in the model's dtype
  void gather(std::span<const int32_t> ids, std::span<std::byte> rows) const;

 private:
  InputFile file_;
  uint64_t begin_;
  size_t row_bytes_;
};

}  // namespace fp8kv
