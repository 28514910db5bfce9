#include "model/embedding.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "model/weights/weights.h"

namespace fp8kv {
namespace {

// Where memory of their own is needed for rows, it is for so many.
constexpr int64_t kRowsAtOnce = 256;

template <typename View>
View rows_of(const View& view, int64_t first, int64_t count) {
  const Shape shape = view.shape.rank() == 1 ? Shape{count} : Shape{count, view.shape[1]};
  const size_t row_bytes = view.bytes() / static_cast<size_t>(view.shape[0]);
  return {view.data + static_cast<size_t>(first) * row_bytes, view.dtype, shape};
}

int64_t row_dim(const ModelConfig& config) {
  return config.embed_dim > 0 ? config.embed_dim : config.dim;
}

}  // namespace

Embedding::Embedding(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                     EmbeddingTable table)
    : backend_(backend),
      multiplier_(static_cast<float>(config.block.embed_multiplier)),
      position_offset_(config.position_offset),
      row_bytes_(static_cast<size_t>(row_dim(config)) * dtype_bytes(config.dtype)) {
  const WeightLoader loader(checkpoint, config, backend);
  up_ = loader.outer(TensorRole::embed_up);
  positions_ = loader.outer(TensorRole::positions);
  const DType activation = backend.activation_dtype(config.dtype);
  if (up_) tokens_ = backend.allocate(activation, Shape{kRowsAtOnce, row_dim(config)});
  if (positions_) placed_ = backend.allocate(activation, Shape{kRowsAtOnce, config.dim});
  // Rows of the file are rows of x only where both have one type.
  const bool readable = backend.transfers() && activation == config.dtype;
  if (table == EmbeddingTable::on_backend || !readable) {
    table_ = loader.embedding();
    return;
  }
  const TensorLocation& location =
      checkpoint.tensors().at(embedding_tensor(checkpoint, config).name);
  file_.emplace(checkpoint.folder() / checkpoint.shards()[location.shard].file);
  begin_ = location.entry.begin;
}

void Embedding::embed(const Step& step, const TensorView& x) {
  const int64_t n = step.rows(), at_once = up_ || positions_ ? kRowsAtOnce : n;
  for (int64_t first = 0; first < n; first += at_once) {
    embed_rows(step, first, rows_of(x, first, std::min(at_once, n - first)));
  }
}

// Of the step's rows from `first` on.
void Embedding::embed_rows(const Step& step, int64_t first, const TensorView& x) {
  const int64_t n = x.shape[0];
  const TensorView tokens = up_ ? tokens_.first(n) : x;
  if (file_) {
    read_rows(step.host_ids().subspan(static_cast<size_t>(first), static_cast<size_t>(n)));
    backend_.copy_in(tokens, {rows_.data(), tokens.dtype, tokens.shape});
  } else {
    backend_.embed(table_.view(), rows_of(step.ids(), first, n), tokens);
  }
  if (multiplier_ != 1.0f) backend_.scale(tokens, multiplier_, 0.0f);
  if (up_) backend_.linear(tokens, std::array{Projection{up_->view(), std::nullopt, x, false}});
  if (!positions_) return;
  const ConstTensorView table = positions_->view();
  const TensorView placed = placed_.first(n);
  backend_.embed(rows_of(table, position_offset_, table.shape[0] - position_offset_),
                 rows_of(step.batch().positions, first, n), placed);
  backend_.add(x, placed, 1.0f);
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
