#include "model/row_table.h"

#include <vector>

#include "model/read_rows.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {

RowTable::RowTable(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                   const TableTensor& table)
    : backend_(backend),
      row_bytes_(static_cast<size_t>(table.row_dim) * dtype_bytes(config.dtype)) {
  // Rows can be read from the file only if file and activations have the same dtype.
  const bool readable =
      backend.transfers() && backend.activation_dtype(config.dtype) == config.dtype;
  if (table.where == EmbeddingTable::on_backend || !readable) {
    table_ = WeightLoader(checkpoint, config, backend).tensor(table.tensor);
    const TensorView& all = table_.view();
    view_ = reshaped(all, {all.shape.elements() / table.row_dim, table.row_dim});
    return;
  }
  const TensorLocation& location = checkpoint.tensors().at(table.tensor.name);
  file_.emplace(checkpoint.folder() / checkpoint.shards()[location.shard].file);
  begin_ = location.entry.begin;
}

void RowTable::rows(std::span<const int32_t> host_ids, const ConstTensorView& ids,
                    const TensorView& out) {
  if (!file_) return backend_.embed(view_, ids, out);
  const std::vector<int64_t> all(host_ids.begin(), host_ids.end());
  rows_.resize(all.size() * row_bytes_);
  read_rows(all, row_bytes_, rows_.data(), [&](int64_t id, std::span<std::byte> to) {
    file_->read(begin_ + static_cast<uint64_t>(id) * row_bytes_, to);
  });
  backend_.copy_in(out, {rows_.data(), out.dtype, out.shape});
}

}  // namespace fp8kv
