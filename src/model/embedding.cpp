#include "model/embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "model/weights.h"

namespace fp8kv {

Embedding::Embedding(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                     EmbeddingTable table)
    : backend_(backend),
      multiplier_(static_cast<float>(config.block.embed_multiplier)),
      row_bytes_(static_cast<size_t>(config.dim) * dtype_bytes(config.dtype)) {
  // Rows of the file are rows of x only where both have one type.
  const bool readable =
      backend.transfers() && backend.activation_dtype(config.dtype) == config.dtype;
  if (table == EmbeddingTable::on_backend || !readable) {
    table_ = WeightLoader(checkpoint, config, backend).embedding();
    return;
  }
  const TensorLocation& location = checkpoint.tensors().at(embedding_name(checkpoint, config));
  file_.emplace(checkpoint.folder() / checkpoint.shards()[location.shard].file);
  begin_ = location.entry.begin;
}

void Embedding::embed(const Step& step, const TensorView& x) {
  if (file_) {
    read_rows(step.host_ids());
    backend_.copy_in(x, {rows_.data(), x.dtype, x.shape});
  } else {
    backend_.embed(table_.view(), step.ids(), x);
  }
  if (multiplier_ != 1.0f) backend_.scale(x, multiplier_, 0.0f);
}

// rows_[i] = the row of ids[i], each read once.
void Embedding::read_rows(std::span<const int32_t> ids) {
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
