#include "calib/drafts/draft_pass.h"

#include <array>
#include <numeric>

#include "base/error.h"
#include "calib/drafts/layer_pass.h"
#include "calib/drafts/next_tokens.h"
#include "core/numbers/host_view.h"
#include "model/embedding.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

class Drafting {
 public:
  Drafting(const DraftPass& pass, const DraftModel& draft, const NextTokens& next)
      : pass_(pass),
        draft_(draft),
        next_(next),
        dim_(pass.config.dim),
        backend_(pass.backend),
        pass_of_layer_({pass.checkpoint, draft.config, draft.index}, backend_, next),
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
    return pass_of_layer_.run({.input =
                                   [&](size_t batch) {
                                     batch_ = batch;
                                     return input(pass_.plan.batches[batch],
                                                  pass_.residual.begin(batch));
                                   },
                               .done =
                                   [&](size_t batch, const TensorView&) {
                                     // A batch without rows was not begun.
                                     if (next_.plan.batches[batch].rows == 0)
                                       pass_.residual.begin(batch);
                                     pass_.residual.end();
                                     progress.advance();
                                   }});
  }

 private:
  DType activation() const { return pass_.backend.activation_dtype(pass_.config.dtype); }
  Tensor allocate(DType dtype, const Shape& shape) { return pass_.backend.allocate(dtype, shape); }

  Norm norm_of(const Tensor& weight) const {
    return {.kind = pass_.config.block.norm,
            .eps = static_cast<float>(pass_.config.norm_eps),
            .weight_offset = pass_.config.block.norm_plus_one ? 1.0f : 0.0f,
            .weight = weight.view()};
  }

  // Computes the input of the draft layer: [rows, dim].
  TensorView input(const WindowBatch& of_model, const TensorView& stream) {
    host_rows_ = rows_with_next(pass_.windows, of_model);
    const auto n = std::ssize(host_rows_);
    const TensorView rows = rows_.first(n);
    backend_.copy_in(rows, host_view(host_rows_));
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
    const Step& step = pass_of_layer_.step();
    const TensorView embedded = embedded_.first(n);
    embedding_.embed(step, embedded);
    if (!draft_.layer.kind->entry.first_masked) return embedded;
    // Row n holds the zeros. `hidden_` was already copied into `both_`.
    std::vector<std::byte> zeros(static_cast<size_t>(dim_) * dtype_bytes(embedded.dtype));
    const TensorView with_zeros = embedded_.first(n + 1);
    const size_t at = embedded.bytes();
    backend_.copy_in({with_zeros.data + at, embedded.dtype, {1, dim_}},
                     {zeros.data(), embedded.dtype, {1, dim_}});
    host_rows_.resize(static_cast<size_t>(n));
    std::iota(host_rows_.begin(), host_rows_.end(), 0);
    size_t row = 0;
    for (const std::vector<int32_t>& ids : windows_of_step()) {
      host_rows_[row] = static_cast<int32_t>(n);
      row += ids.size();
    }
    const TensorView rows = rows_.first(n);
    backend_.copy_in(rows, host_view(host_rows_));
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
  LayerPass pass_of_layer_;
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
