// How tokens become rows of the residual stream: the only way in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "files/file.h"
#include "model/step.h"

namespace fp8kv {

enum class EmbeddingTable {
  on_backend,  // all of it; the CPU uses the file mapping in place
  in_file      // of a device with memory of its own: rows are read as steps ask for them
};

class Embedding {
 public:
  // REQUIRES the checkpoint to have passed read_model_config, and to outlive this.
  Embedding(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            EmbeddingTable table);

  // x [rows, dim] activation dtype = the embeddings of the step's tokens, times the model's
  // multiplier; brought to `dim` where their rows are of another size, and with the rows of their
  // positions added where the model has such.
  void embed(const Step& step, const TensorView& x);

 private:
  void read_rows(std::span<const int32_t> ids);
  void embed_rows(const Step& step, int64_t first, const TensorView& x);

  Backend& backend_;
  float multiplier_;
  Tensor table_;              // [vocab_size, embed_dim]; empty where rows are read from the file
  std::optional<Tensor> up_;  // [dim, embed_dim]
  std::optional<Tensor> positions_;  // [position_rows, dim]
  int64_t position_offset_;
  Tensor tokens_;                  // [kRowsAtOnce, embed_dim]: rows before `up_`
  Tensor placed_;                  // [kRowsAtOnce, dim]: rows of `positions_`
  std::optional<InputFile> file_;  // that has the table, from `begin_` on
  uint64_t begin_ = 0;
  size_t row_bytes_;
  std::vector<std::byte> rows_;
};

}  // namespace fp8kv
