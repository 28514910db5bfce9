#include "calib/measure/output_error.h"

#include <algorithm>
#include <array>

#include "backend/download_floats.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// A row of zeros has no size that an error could be compared with.
constexpr double kLeastSquare = 1e-30;

double square_of(const float* row, int64_t dim) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += double{row[i]} * double{row[i]};
  return std::max(sum, kLeastSquare);
}

}  // namespace

OutputError::OutputError(Backend& backend, const ModelConfig& config, int64_t most_rows)
    : backend_(backend), config_(config) {
  int64_t width = 0, heads = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    if (!config.writes_cache(i)) continue;
    width = std::max(width, config.n_heads * config.layer(i).v_head_dim);
    heads = std::max(heads, int64_t{config.layer(i).n_kv_heads});
  }
  const DType activation = backend.activation_dtype(config.dtype);
  matrix_ = backend.allocate(config.dtype, Shape{config.dim, width});
  if (!config.stored_as.empty()) {
    decoded_ = backend.allocate(config.dtype, Shape{config.dim, width});
  }
  changes_ = backend.allocate(activation, Shape{most_rows, heads * config.dim});
  if (norms_output(config.block.norm_place)) {
    output_ = backend.allocate(activation, Shape{most_rows, config.dim});
  }
}

void OutputError::begin_layer(int64_t index, const LayerWeights& weights) {
  weights_ = &weights;
  n_kv_heads_ = config_.layer(index).n_kv_heads;
  const int64_t width = config_.n_heads_of(index) * config_.layer(index).v_head_dim;
  const int64_t columns = width / n_kv_heads_;
  ConstTensorView whole = weights.o.weight;
  if (weights.o.codes) {
    const TensorView decoded{decoded_.view().data, config_.dtype, Shape{config_.dim, width}};
    backend_.decode_weights(*weights.o.codes, decoded);
    whole = decoded;
  }
  const size_t element = dtype_bytes(config_.dtype);
  for (int64_t head = 0; head < n_kv_heads_; ++head) {
    const size_t first = static_cast<size_t>(head * columns) * element;
    const size_t size = static_cast<size_t>(config_.dim * columns) * element;
    backend_.arrange({whole.data + first, whole.dtype, whole.shape}, {width, 1},
                     {matrix_.view().data + static_cast<size_t>(head) * size, config_.dtype,
                      Shape{config_.dim, columns}});
  }
  columns_.clear();
  if (output_.empty()) return;
  const Norm& norm = weights.attn_post_norm.value();
  download_floats(backend_, norm.weight, columns_);
  for (float& each : columns_) each += norm.weight_offset;
}

ConstTensorView OutputError::gated(Forward& forward, const TensorView& attended) const {
  const int64_t n = attended.shape[0];
  const TensorView flat = reshaped(attended, {n, attended.shape[1] * attended.shape[2]});
  return weights_->attn_gate ? forward.gated(*weights_, flat, x_) : ConstTensorView(flat);
}

void OutputError::begin_rows(Forward& forward, const TensorView& x, const TensorView& attended) {
  FP8KV_ASSERT(x.shape[1] == config_.dim);
  x_ = x;
  const int64_t n = x.shape[0];
  rows_.clear();
  download_floats(backend_, x, floats_);
  for (int64_t row = 0; row < n; ++row) {
    rows_.push_back(1 / square_of(floats_.data() + row * x.shape[1], x.shape[1]));
  }
  if (output_.empty()) return;
  const TensorView output = output_.first(n);
  const Linear& o = weights_->o;
  backend_.linear(gated(forward, attended),
                  std::array{Projection{o.weight, o.bias, output, false, o.codes}});
  download_floats(backend_, output, floats_);
  const int64_t dim = config_.dim;
  for (int64_t row = 0; row < n; ++row) {
    const double square = square_of(floats_.data() + row * dim, dim);
    rows_[static_cast<size_t>(row)] *= static_cast<double>(dim) / square;
  }
}

const std::vector<double>& OutputError::of(Forward& forward, const TensorView& change) {
  const int64_t n = change.shape[0], dim = config_.dim;
  const int64_t columns = change.shape[1] * change.shape[2] / n_kv_heads_;
  const ConstTensorView rows = gated(forward, change);
  const TensorView made{changes_.view().data, changes_.view().dtype, Shape{n, n_kv_heads_, dim}};
  backend_.linear_heads({{rows.data, rows.dtype, Shape{n, n_kv_heads_, columns}}, 0},
                        {matrix_.view().data, config_.dtype, Shape{n_kv_heads_, dim, columns}},
                        {made, 0});
  download_floats(backend_, made, floats_);
  errors_.assign(static_cast<size_t>(n * n_kv_heads_), 0);
  for (size_t i = 0; i < errors_.size(); ++i) {
    float* of = floats_.data() + static_cast<int64_t>(i) * dim;
    for (size_t column = 0; column < columns_.size(); ++column) of[column] *= columns_[column];
    errors_[i] = square_of(of, dim) * rows_[i / static_cast<size_t>(n_kv_heads_)];
  }
  return errors_;
}

}  // namespace fp8kv
