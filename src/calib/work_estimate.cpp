#include "calib/work_estimate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "config/families/tensor_table.h"
#include "core/model/tensor_roles.h"

namespace fp8kv {
namespace {

// The size of the measured product: large enough for full speed, small enough to end soon.
constexpr int64_t kRows = 512, kFewRows = 64, kOutputs = 1024;
constexpr double kEnough_s = 0.05;

// Whether a layer that stops after K and V multiplies by this tensor.
bool comes_before_cache(TensorRole role) {
  constexpr std::array kRoles = {TensorRole::q,         TensorRole::k,        TensorRole::v,
                                 TensorRole::q_down,    TensorRole::latent,   TensorRole::k_rope,
                                 TensorRole::pool_rows, TensorRole::pool_gate};
  return std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end();
}

// The share of a layer's chosen experts that a token goes to.
double share_of_experts(const ExpertsConfig& experts) {
  return static_cast<double>(experts.routing.per_token - experts.fixed) /
         static_cast<double>(experts.choices() - experts.fixed);
}

double of_token(const ModelConfig& config, int64_t layer, bool whole) {
  double sum = 0;
  for (const ModelTensor& tensor : layer_tensors(config, layer)) {
    const TensorRole role = tensor.parts.front().role;
    if (tensor.is_bias || role_row(role).use == MatrixUse::none) continue;
    if (!whole && !comes_before_cache(role)) continue;
    const double share =
        role_row(role).part == RolePart::expert ? share_of_experts(*config.experts) : 1;
    sum += share * static_cast<double>(tensor.shape.elements());
  }
  return sum;
}

// Multiply-adds of scores and weighted values: each token attends to the earlier tokens in reach.
double of_attention(const ModelConfig& config, int64_t layer, double length) {
  const LayerDescription& of = config.layer(layer);
  if (!config.attends(layer)) return 0;
  const double reach = of.reach > 0 ? std::min(static_cast<double>(of.reach), length) : length;
  const double pairs = reach * (length - reach / 2);
  const int64_t heads = config.n_heads_of(layer);
  return pairs * static_cast<double>(heads * (of.k_head_dim + of.v_head_dim));
}

void fill_with_ones(Backend& backend, const TensorView& tensor) {
  // These bytes are a plain number in any dtype: 0x3F3F is 0.75 in BF16 and F32, and 1.8 in F16.
  const std::vector<std::byte> bytes(
      static_cast<size_t>(tensor.shape.elements()) * dtype_bytes(tensor.dtype), std::byte{0x3F});
  backend.copy_in(tensor, {bytes.data(), tensor.dtype, tensor.shape});
}

}  // namespace

double multiply_adds(const ModelConfig& config, const std::vector<std::vector<int32_t>>& windows) {
  double tokens = 0;
  for (const auto& window : windows) tokens += static_cast<double>(window.size());
  const int64_t n_layers = config.layers_to_last_cache();
  double sum = 0;
  for (int64_t layer = 0; layer < n_layers; ++layer) {
    const bool whole = layer + 1 < n_layers;
    sum += tokens * of_token(config, layer, whole);
    if (!whole) continue;
    for (const auto& window : windows) {
      sum += of_attention(config, layer, static_cast<double>(window.size()));
    }
  }
  return sum;
}

double measured_speed(Backend& backend, const ModelConfig& config) {
  const DType activation = backend.activation_dtype(config.dtype);
  const Tensor weight = backend.allocate(config.dtype, Shape{kOutputs, config.dim});
  const Tensor x = backend.allocate(activation, Shape{kRows, config.dim});
  const Tensor out = backend.allocate(activation, Shape{kRows, kOutputs});
  fill_with_ones(backend, weight.view());
  fill_with_ones(backend, x.view());
  std::vector<std::byte> element(dtype_bytes(activation));
  const auto speed_of = [&](int64_t rows) {
    const auto first = [&](const TensorView& of) {
      return TensorView{of.data, of.dtype, Shape{rows, of.shape[1]}};
    };
    const std::array projections = {Projection{weight.view(), std::nullopt, first(out.view())}};
    const auto start = std::chrono::steady_clock::now();
    double seconds = 0;
    int64_t done = 0;
    do {
      backend.linear(first(x.view()), projections);
      backend.download({out.view().data, activation, Shape{1}}, element);  // waits for it
      done += rows;
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    } while (seconds < kEnough_s / 2);
    return std::pair(static_cast<double>(done * config.dim * kOutputs) / seconds, seconds);
  };
  const auto [slow, seconds] = speed_of(kFewRows);  // also wakes up the threads
  return seconds > kEnough_s ? slow : speed_of(kRows).first;
}

}  // namespace fp8kv
