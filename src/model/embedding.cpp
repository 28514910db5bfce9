#include "model/embedding.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "model/parts/streams/hyper.h"
#include "model/parts/streams/streams.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

// Rows at a time if embedding needs scratch memory.
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
      activation_(backend.activation_dtype(config.dtype)),
      dim_(config.dim),
      multiplier_(static_cast<float>(config.block.embed_multiplier)),
      table_(checkpoint, config, backend,
             {embedding_tensor(checkpoint, config), row_dim(config), table}),
      position_offset_(config.position_offset),
      repeats_(config.hyper || config.has_shortcut() || config.shared_block ||
               config.attn_res_block > 0) {
  const WeightLoader loader(checkpoint, config, backend);
  up_ = loader.outer(TensorRole::embed_up);
  positions_ = loader.outer(TensorRole::positions);
  if (up_) tokens_ = backend.allocate(activation_, Shape{kRowsAtOnce, row_dim(config)});
  if (positions_) placed_ = backend.allocate(activation_, Shape{kRowsAtOnce, config.dim});
  if (config.embed_norm) norm_ = loader.embed_norm(norm_weights_);
  streams_ = loader.outers(TensorRole::stream_in);
  if (config.layer_input_dim > 0) inputs_.emplace(checkpoint, config, backend, table);
  if (config.ngrams) ngrams_.emplace(checkpoint, config, backend);
  if (config.experts && config.experts->table_layers > 0) {
    tables_.emplace(checkpoint, config, backend);
  }
}

std::vector<const Tensor*> Embedding::weights() const {
  std::vector<const Tensor*> all = {&table_.table()};
  for (const std::optional<Tensor>* each : {&up_, &positions_}) {
    if (*each) all.push_back(&**each);
  }
  for (const Tensor& stream : streams_) all.push_back(&stream);
  for (const Tensor& each : norm_weights_) all.push_back(&each);
  if (inputs_) {
    const std::vector<const Tensor*> inputs = inputs_->weights();
    all.insert(all.end(), inputs.begin(), inputs.end());
  }
  return all;
}

void Embedding::embed(const Step& step, const TensorView& x) {
  if (repeats_) return repeat_streams(backend_, embedded(step), x);
  if (streams_.empty()) return embed_tokens(step, x);
  const TensorView tokens = embedded(step);
  spread_streams(backend_, tokens, streams_, stream_.first(step.rows()), x);
}

// Embeds the step's tokens into memory kept for that.   [rows, dim]
TensorView Embedding::embedded(const Step& step) {
  const int64_t n = step.rows();
  if (embedded_.view().shape.rank() == 0 || embedded_.view().shape[0] < n) {
    embedded_ = backend_.allocate(activation_, Shape{n, dim_});
    if (!streams_.empty()) stream_ = backend_.allocate(activation_, Shape{n, dim_});
  }
  embed_tokens(step, embedded_.first(n));
  return embedded_.first(n);
}

void Embedding::embed_tokens(const Step& step, const TensorView& x) {
  const int64_t n = step.rows(), at_once = up_ || positions_ ? kRowsAtOnce : n;
  for (int64_t first = 0; first < n; first += at_once) {
    embed_rows(step, first, rows_of(x, first, std::min(at_once, n - first)));
  }
}

std::optional<ConstTensorView> Embedding::layer_input(const Step& step, int64_t index) {
  if (ngrams_) return ngrams_->of(step, index);
  if (tables_) return tables_->of(step, index);
  if (!inputs_) return std::nullopt;
  return inputs_->of(step, embedded(step), index);
}

// Embeds the step's rows from `first` on.
void Embedding::embed_rows(const Step& step, int64_t first, const TensorView& x) {
  const int64_t n = x.shape[0];
  const TensorView tokens = up_ ? tokens_.first(n) : x;
  table_.rows(step.host_ids().subspan(static_cast<size_t>(first), static_cast<size_t>(n)),
              rows_of(step.ids(), first, n), tokens);
  if (multiplier_ != 1.0f) backend_.scale(tokens, multiplier_, 0.0f);
  if (up_) backend_.linear(tokens, std::array{Projection{up_->view(), std::nullopt, x, false}});
  if (positions_) add_positions(step, first, x);
  if (norm_) backend_.norm(x, *norm_, x);
}

void Embedding::add_positions(const Step& step, int64_t first, const TensorView& x) {
  const int64_t n = x.shape[0];
  const ConstTensorView table = positions_->view();
  const TensorView placed = placed_.first(n);
  backend_.embed(rows_of(table, position_offset_, table.shape[0] - position_offset_),
                 rows_of(step.batch().positions, first, n), placed);
  backend_.add(x, placed, 1.0f);
}

}  // namespace fp8kv
