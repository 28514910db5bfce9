#include "model/row_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/weights/weight_loader.h"

namespace fp8kv {

RowTable::RowTable(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                   const ModelTensor& tensor, int64_t row_dim, EmbeddingTable where)
    : backend_(backend), row_bytes_(static_cast<size_t>(row_dim) * dtype_bytes(config.dtype)) {
  // Rows can be read from the file only if file and activations have the same dtype.
  const bool readable =
      backend.transfers() && backend.activation_dtype(config.dtype) == config.dtype;
  if (where == EmbeddingTable::on_backend || !readable) {
    table_ = WeightLoader(checkpoint, config, backend).tensor(tensor);
    const TensorView& all = table_.view();
    view_ = reshaped(all, {all.shape.elements() / row_dim, row_dim});
    return;
  }
  const TensorLocation& location = checkpoint.tensors().at(tensor.name);
  file_.emplace(checkpoint.folder() / checkpoint.shards()[location.shard].file);
  begin_ = location.entry.begin;
}

void RowTable::rows(std::span<const int32_t> host_ids, const ConstTensorView& ids,
                    const TensorView& out) {
  if (!file_) return backend_.embed(view_, ids, out);
  read_rows(host_ids);
  backend_.copy_in(out, {rows_.data(), out.dtype, out.shape});
}

// rows_[i] = the row of ids[i], each read once.
void RowTable::read_rows(std::span<const int32_t> ids) {
  rows_.resize(ids.size() * row_bytes_);
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ids[a] < ids[b]; });
  const std::byte* last = nullptr;
  for (size_t i = 0; i < order.size(); ++i) {
    std::byte* to = rows_.data() + order[i] * row_bytes_;
    if (i > 0 && ids[order[i]] == ids[order[i - 1]]) {
      std::memcpy(to, last, row_bytes_);
    } else {
      file_->read(begin_ + static_cast<uint64_t>(ids[order[i]]) * row_bytes_, {to, row_bytes_});
    }
    last = to;
  }
}

}  // namespace fp8kv
