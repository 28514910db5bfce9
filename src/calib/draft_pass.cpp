#include "calib/draft_pass.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "calib/windows/workspace.h"
#include "model/embedding.h"
#include "model/weights/weight_loader.h"
#include "model/weights/weight_stream.h"

namespace fp8kv {
namespace {

// The windows without their first token, as batches for the draft layer. The batches match those of
// the model. Windows of one token are left out.
struct NextTokens {
  NextTokens(const std::vector<std::vector<int32_t>>& windows, const WindowPlan& of_model) {
    for (const WindowBatch& batch : of_model.batches) {
      WindowBatch next{plan.batches.size(), ids.size(), 0, plan.total_rows, 0};
      for (size_t i = batch.first; i < batch.first + batch.count; ++i) {
        if (windows[i].size() < 2) continue;
        ids.emplace_back(windows[i].begin() + 1, windows[i].end());
        add(next, std::ssize(ids.back()));
      }
      plan.batches.push_back(next);
    }
  }

  std::vector<std::vector<int32_t>> ids;
  WindowPlan plan;

 private:
  void add(WindowBatch& batch, int64_t rows) {
    batch.count += 1;
    batch.rows += rows;
    pages_ = batch.count == 1 ? KvCache::pages_for(rows) : pages_ + KvCache::pages_for(rows);
    plan.total_rows += rows;
    plan.total_pages += KvCache::pages_for(rows);
    plan.longest_window = std::max(plan.longest_window, rows);
    plan.most_rows = std::max(plan.most_rows, batch.rows);
    plan.most_windows = std::max(plan.most_windows, static_cast<int64_t>(batch.count));
    plan.most_pages = std::max(plan.most_pages, pages_);
  }

  int64_t pages_ = 0;  // in the batch that is being filled
};

// The rows of a model batch that have a next token, window after window.
std::vector<int32_t> rows_with_next(const std::vector<std::vector<int32_t>>& windows,
                                    const WindowBatch& batch) {
  std::vector<int32_t> rows;
  int32_t first = 0;
  for (size_t i = batch.first; i < batch.first + batch.count; ++i) {
    const auto length = static_cast<int32_t>(windows[i].size());
    for (int32_t at = 0; at + 1 < length; ++at) rows.push_back(first + at);
    first += length;
  }
  return rows;
}

class Drafting {
 public:
  Drafting(const DraftPass& pass, const DraftModel& draft, const NextTokens& next)
      : pass_(pass),
        draft_(draft),
        next_(next),
        dim_(pass.config.dim),
        backend_(pass.backend),
        workspace_(backend_, draft.config, next.plan, draft.index + 1),
        embedding_(pass.checkpoint, pass.config, backend_, EmbeddingTable::in_file),
        rows_(allocate(DType::i32, {next.plan.most_rows})),
        hidden_(allocate(activation(), {next.plan.most_rows, dim_})),
        embedded_(allocate(activation(), {next.plan.most_rows + 1, dim_})),
        both_(allocate(activation(), {next.plan.most_rows, 2 * dim_})) {
    const WeightLoader loader(pass.checkpoint, pass.config, backend_);
    last_norm_ = loader.outer(TensorRole::norm).value();
    hidden_norm_ = loader.tensor(draft.hidden_norm);
    embedding_norm_ = loader.tensor(draft.embedding_norm);
    product_ = loader.tensor(draft.product);
  }

  LayerMagnitudes run(Progress& progress) {
    WeightStream weights(pass_.checkpoint, draft_.config, backend_,
                         {{draft_.index, LayerPart::up_to_kv}}, {.buffers = 1});
    const LayerWeights& of_layer = weights.begin();
    const TensorView magnitudes = workspace_.magnitudes_of(draft_.config, draft_.index).value();
    const std::vector<uint64_t> zeros(static_cast<size_t>(magnitudes.shape.elements()));
    copy(magnitudes, DType::u64, std::as_bytes(std::span(zeros)));
    for (size_t i = 0; i < pass_.plan.batches.size(); ++i) {
      const TensorView stream = pass_.residual.begin(i);
      if (next_.plan.batches[i].rows > 0) batch(i, stream, of_layer, magnitudes);
      pass_.residual.end();
      progress.advance();
    }
    std::vector<uint64_t> words(zeros.size());
    backend_.download(magnitudes, std::as_writable_bytes(std::span(words)));
    weights.end();
    return magnitudes_from(words, magnitudes.shape[1], draft_.index);
  }

 private:
  DType activation() const { return pass_.backend.activation_dtype(pass_.config.dtype); }
  Tensor allocate(DType dtype, const Shape& shape) { return pass_.backend.allocate(dtype, shape); }

  void copy(const TensorView& to, DType dtype, std::span<const std::byte> from) {
    backend_.copy_in(to, {from.data(), dtype, to.shape});
  }

  Norm norm_of(const Tensor& weight) const {
    return {.kind = pass_.config.block.norm,
            .eps = static_cast<float>(pass_.config.norm_eps),
            .weight_offset = pass_.config.block.norm_plus_one ? 1.0f : 0.0f,
            .weight = weight.view()};
  }

  void batch(size_t index, const TensorView& stream, const LayerWeights& weights,
             const TensorView& magnitudes) {
    batch_ = index;
    workspace_.rows.begin(next_.ids, next_.plan.batches[index]);
    const Step& step = workspace_.rows.step;
    const TensorView x = input(pass_.plan.batches[index], stream);
    workspace_.forward.layer(
        draft_.index, weights, x,
        {step.batch(), workspace_.rows.cache.layer(draft_.index), LayerPart::up_to_kv, magnitudes});
  }

  // Computes the input of the draft layer: [rows, dim].
  TensorView input(const WindowBatch& of_model, const TensorView& stream) {
    host_rows_ = rows_with_next(pass_.windows, of_model);
    const auto n = std::ssize(host_rows_);
    const TensorView rows = rows_.first(n);
    copy(rows, DType::i32, std::as_bytes(std::span(host_rows_)));
    const TensorView hidden = hidden_.first(n);
    backend_.embed(stream, rows, hidden);
    backend_.norm(hidden, norm_of(last_norm_), hidden);
    backend_.norm(hidden, norm_of(hidden_norm_), hidden);
    put(hidden, draft_.layer.kind->entry.hidden_first ? 0 : dim_);
    const TensorView embedded = next_embedded(n);
    backend_.norm(embedded, norm_of(embedding_norm_), embedded);
    put(embedded, draft_.layer.kind->entry.hidden_first ? dim_ : 0);
    backend_.linear(both_.first(n), std::array{Projection{product_.view(), {}, hidden}});
    return hidden;
  }

  // Copies `from` into columns [first, first + dim) of the product's input.
  void put(const TensorView& from, int64_t first) {
    const int64_t n = from.shape[0];
    const TensorView both = both_.first(n);
    backend_.copy_columns({{from.data, from.dtype, {n, 1, dim_}}, 0},
                          {{both.data, both.dtype, {n, 1, 2 * dim_}}, first}, dim_);
  }

  // Returns the embeddings of the step's tokens. Some kinds of draft layers mask position 0 with
  // zeros.
  TensorView next_embedded(int64_t n) {
    const Step& step = workspace_.rows.step;
    const TensorView embedded = embedded_.first(n);
    embedding_.embed(step, embedded);
    if (!draft_.layer.kind->entry.first_masked) return embedded;
    // Row n holds the zeros. `hidden_` was already copied into `both_`.
    std::vector<std::byte> zeros(static_cast<size_t>(dim_) * dtype_bytes(embedded.dtype));
    const TensorView with_zeros = embedded_.first(n + 1);
    const size_t at = embedded.bytes();
    copy({with_zeros.data + at, embedded.dtype, {1, dim_}}, embedded.dtype, zeros);
    host_rows_.resize(static_cast<size_t>(n));
    std::iota(host_rows_.begin(), host_rows_.end(), 0);
    size_t row = 0;
    for (const std::vector<int32_t>& ids : windows_of_step()) {
      host_rows_[row] = static_cast<int32_t>(n);
      row += ids.size();
    }
    const TensorView rows = rows_.first(n);
    copy(rows, DType::i32, std::as_bytes(std::span(host_rows_)));
    const TensorView masked = hidden_.first(n);
    backend_.embed(with_zeros, rows, masked);
    return masked;
  }

  std::span<const std::vector<int32_t>> windows_of_step() const {
    const WindowBatch& batch = next_.plan.batches[batch_];
    return std::span(next_.ids).subspan(batch.first, batch.count);
  }

  const DraftPass& pass_;
  const DraftModel& draft_;
  const NextTokens& next_;
  const int64_t dim_;
  Backend& backend_;
  Workspace workspace_;
  Embedding embedding_;
  Tensor rows_;      // [most_rows] i32
  Tensor hidden_;    // [most_rows, dim]
  Tensor embedded_;  // [most_rows + 1, dim]
  Tensor both_;      // [most_rows, 2 * dim]
  Tensor last_norm_, hidden_norm_, embedding_norm_, product_;
  std::vector<int32_t> host_rows_;
  size_t batch_ = 0;
};

}  // namespace

uint64_t draft_bytes(const ModelConfig& config, const Backend& backend, const WindowPlan& plan) {
  const auto rows = static_cast<uint64_t>(plan.most_rows + 1);
  const auto dim = static_cast<uint64_t>(config.dim);
  const uint64_t activations =
      rows * 4 * dim * dtype_bytes(backend.activation_dtype(config.dtype)) + rows * 4;
  return activations + (2 * dim + 3) * dim * dtype_bytes(config.dtype);
}

std::optional<LayerMagnitudes> collect_draft(const DraftPass& pass, const DraftModel& draft,
                                             Progress& progress) {
  const NextTokens next(pass.windows, pass.plan);
  if (next.plan.total_rows == 0) return std::nullopt;
  return with_context(cat("draft layer ", draft.layer.name),
                      [&] { return Drafting(pass, draft, next).run(progress); });
}

}  // namespace fp8kv
