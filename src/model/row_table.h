// A table of rows that tokens choose, on the backend or read from its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "config/families/tensor_table.h"
#include "core/model/config.h"
#include "files/file.h"

namespace fp8kv {

enum class EmbeddingTable {
  on_backend,  // all of it; the CPU uses the file mapping in place
  in_file      // for devices with their own memory: steps read the rows they need
};

// The tensor of a table, seen as rows of `row_dim`. One row of the tensor may be several of these.
struct TableTensor {
  ModelTensor tensor;
  int64_t row_dim;
  EmbeddingTable where;
};

class RowTable {
 public:
  // REQUIRES the checkpoint to have passed read_model_config, and to outlive this.
  RowTable(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
           const TableTensor& table);

  // out[i] = row ids[i].   ids [n] i32 on the backend, with a copy on the host; out [n, row_dim]
  // activation dtype
  void rows(std::span<const int32_t> host_ids, const ConstTensorView& ids, const TensorView& out);

  const Tensor& table() const { return table_; }  // empty if rows are read from the file

 private:
  Backend& backend_;
  Tensor table_;  // empty if rows are read from the file
  TensorView view_;
  std::optional<InputFile> file_;  // holds the table, from `begin_` on
  uint64_t begin_ = 0;
  size_t row_bytes_;
  std::vector<std::byte> rows_;
};

}  // namespace fp8kv
