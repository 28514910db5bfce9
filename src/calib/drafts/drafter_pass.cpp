#include "calib/drafts/drafter_pass.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "calib/drafts/layer_pass.h"
#include "calib/drafts/next_tokens.h"
#include "model/embedding.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

// The config by which the embedding of the next token is read: rows as they are in the file, in the
// drafter's file or else in the target's.
ModelConfig embedding_config(const DrafterPass& pass) {
  const ModelConfig& own = pass.drafter.config;
  const bool owns = own.tensors.front().roles.front() == TensorRole::embedding;
  ModelConfig config = owns ? own : pass.target_config;
  config.dim = own.drafter->dim;
  config.block.embed_multiplier = 1.0;
  config.position_rows = 0;
  config.layer_input_dim = 0;
  config.embed_norm = false;
  return config;
}

class DrafterRun {
 public:
  DrafterRun(const DrafterPass& pass, const NextTokens& next)
      : pass_(pass),
        dim_(pass.drafter.config.drafter->dim),
        backend_(pass.backend),
        layer_({pass.drafter.checkpoint, pass.drafter.config, 0}, backend_, next),
        embedding_config_(embedding_config(pass)),
        embedding_(owns_embedding() ? pass.drafter.checkpoint : pass.target, embedding_config_,
                   backend_, EmbeddingTable::in_file),
        states_(backend_.allocate(pass.hidden.dtype(), {next.plan.most_rows, pass.hidden.width()})),
        hidden_(backend_.allocate(pass.hidden.dtype(), {next.plan.most_rows, dim_})),
        token_(backend_.allocate(pass.hidden.dtype(), {next.plan.most_rows, dim_})),
        both_(backend_.allocate(pass.hidden.dtype(), {next.plan.most_rows, 2 * dim_})) {
    const WeightLoader loader(pass.drafter.checkpoint, pass.drafter.config, backend_);
    for (const ModelTensor& tensor : all_tensors()) {
      const TensorRole role = tensor.parts.front().role;
      if (role == TensorRole::hidden_product) product_ = loader.tensor(tensor);
      if (role == TensorRole::hidden_norm) hidden_norm_ = loader.tensor(tensor);
      if (role == TensorRole::token_norm) token_norm_ = loader.tensor(tensor);
    }
  }

  LayerMagnitudes run(Progress& progress, const auto& done) {
    return layer_.run({.input = [&](size_t batch) { return input(pass_.plan.batches[batch]); },
                       .done =
                           [&](size_t batch, const TensorView& magnitudes) {
                             progress.advance();
                             done(pass_.plan.batches[batch], magnitudes);
                           }});
  }

 private:
  bool owns_embedding() const {
    return pass_.drafter.config.tensors.front().roles.front() == TensorRole::embedding;
  }

  std::vector<ModelTensor> all_tensors() const {
    std::vector<ModelTensor> tensors = outer_tensors(pass_.drafter.config);
    for (ModelTensor& tensor : layer_tensors(pass_.drafter.config, 0)) {
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  Norm norm_of(const Tensor& weight) const {
    return {.eps = static_cast<float>(pass_.drafter.config.norm_eps), .weight = weight.view()};
  }

  // Computes the input of the layer: [rows, 2 * dim].
  TensorView input(const WindowBatch& of_model) {
    const std::vector<int32_t> rows = rows_with_next(pass_.windows, of_model);
    const int64_t n = std::ssize(rows);
    pass_.hidden.take(of_model, rows, taken_);
    const TensorView states = states_.first(n);
    backend_.copy_in(states, {taken_.data(), states.dtype, states.shape});
    const TensorView hidden = hidden_.first(n), token = token_.first(n);
    backend_.linear(states, std::array{Projection{product_.view(), {}, hidden}});
    backend_.norm(hidden, norm_of(hidden_norm_), hidden);
    embedding_.embed(layer_.step(), token);
    backend_.norm(token, norm_of(token_norm_), token);
    put(token, 0);
    put(hidden, dim_);
    return both_.first(n);
  }

  // Copies `from` into columns [first, first + dim) of the layer's input.
  void put(const TensorView& from, int64_t first) {
    const int64_t n = from.shape[0];
    const TensorView both = both_.first(n);
    backend_.copy_columns({{from.data, from.dtype, {n, 1, dim_}}, 0},
                          {{both.data, both.dtype, {n, 1, 2 * dim_}}, first}, dim_);
  }

  const DrafterPass& pass_;
  const int64_t dim_;
  Backend& backend_;
  LayerPass layer_;
  const ModelConfig embedding_config_;
  Embedding embedding_;
  Tensor states_;  // [most_rows, 3 * target_dim]
  Tensor hidden_;  // [most_rows, dim]
  Tensor token_;   // [most_rows, dim]
  Tensor both_;    // [most_rows, 2 * dim]
  Tensor product_, hidden_norm_, token_norm_;
  std::vector<std::byte> taken_;
};

}  // namespace

HiddenStates::HiddenStates(std::vector<int64_t> layers, const WindowPlan& plan, int64_t dim,
                           DType dtype)
    : layers_(std::move(layers)),
      dim_(dim),
      dtype_(dtype),
      row_bytes_(static_cast<size_t>(dim) * dtype_bytes(dtype)),
      states_(static_cast<size_t>(plan.total_rows) * layers_.size() * row_bytes_),
      batch_(static_cast<size_t>(plan.most_rows) * row_bytes_) {}

size_t HiddenStates::place_of(int64_t layer) const {
  return static_cast<size_t>(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
}

void HiddenStates::keep(Backend& backend, int64_t layer, const WindowBatch& batch,
                        const TensorView& rows) {
  const size_t place = place_of(layer);
  const auto n = static_cast<size_t>(batch.rows), first = static_cast<size_t>(batch.first_row);
  const std::span<std::byte> host = std::span(batch_).first(n * row_bytes_);
  backend.download(rows, host);
  for (size_t row = 0; row < n; ++row) {
    std::memcpy(states_.data() + ((first + row) * layers_.size() + place) * row_bytes_,
                host.data() + row * row_bytes_, row_bytes_);
  }
}

void HiddenStates::take(const WindowBatch& batch, const std::vector<int32_t>& rows,
                        std::vector<std::byte>& out) const {
  const size_t width = layers_.size() * row_bytes_;
  out.resize(rows.size() * width);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = static_cast<size_t>(batch.first_row) + static_cast<size_t>(rows[i]);
    std::memcpy(out.data() + i * width, states_.data() + row * width, width);
  }
}

uint64_t drafter_bytes(const ModelConfig& drafter, const Backend& backend, const WindowPlan& plan) {
  const DrafterConfig& own = drafter.drafter.value();
  const auto dim = static_cast<uint64_t>(own.dim);
  const auto states = static_cast<uint64_t>(kDrafterStates * own.target_dim);
  return static_cast<uint64_t>(plan.most_rows) * (states + 4 * dim) *
             dtype_bytes(backend.activation_dtype(drafter.dtype)) +
         (states + 2) * dim * dtype_bytes(drafter.dtype);
}

LayerMagnitudes collect_drafter(
    const DrafterPass& pass, Progress& progress,
    const std::function<void(const WindowBatch& batch, const TensorView& magnitudes)>& done) {
  const NextTokens next(pass.windows, pass.plan);
  if (next.plan.total_rows == 0) {
    throw Error("no window has two tokens, and a drafter reads a token and the next",
                "use longer texts, or a larger --seq-len");
  }
  return with_context("drafter", [&] { return DrafterRun(pass, next).run(progress, done); });
}

}  // namespace fp8kv
