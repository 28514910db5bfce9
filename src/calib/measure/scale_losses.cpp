#include "calib/measure/scale_losses.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/download_floats.h"
#include "backend/measuring_backend.h"
#include "base/error.h"
#include "core/numbers/host_view.h"
#include "core/scales/scale_grid.h"
#include "core/scales/scales.h"

namespace fp8kv {
namespace {

constexpr int64_t kStretch = 128;  // positions
constexpr int64_t kMeasured = 16;  // the last ones of each stretch

int64_t stretches(const WindowPlan& plan) {
  return (plan.longest_window + kStretch - 1) / kStretch;
}

int64_t most_measured(const WindowPlan& plan) {
  return stretches(plan) * kMeasured;
}

// A window's pages: its own, from the first one on.
KvCache::Sequence first_tokens(int64_t tokens) {
  KvCache::Sequence sequence;
  sequence.pages.resize(static_cast<size_t>(KvCache::pages_for(tokens)));
  std::iota(sequence.pages.begin(), sequence.pages.end(), 0);
  sequence.tokens = tokens;
  return sequence;
}

TensorView rows_of(const TensorView& all, int64_t first, int64_t rows) {
  const size_t row = all.bytes() / static_cast<size_t>(all.shape[0]);
  return {all.data + static_cast<size_t>(first) * row, all.dtype,
          Shape{rows, all.shape[1], all.shape[2]}};
}

TensorView flat(const TensorView& rows) {
  return reshaped(rows, {rows.shape[0], rows.shape[1] * rows.shape[2]});
}

uint64_t counted(double loss) {
  return static_cast<uint64_t>(std::llround((loss < 1 ? loss : 1) / kLossUnit));
}

}  // namespace

void check_losses_measurable(const ModelConfig& config) {
  if (config.block.differential) {
    throw Error(
        "losses of scales: are measured for each KV head, and differential attention subtracts the "
        "output of one head from another's",
        "use --policy amax", ErrorKind::usage);
  }
  if (config.shared_block) {
    throw Error(
        "losses of scales: are measured by what attention adds to the stream, and the shared "
        "blocks of this model add nothing to it",
        "use --policy amax", ErrorKind::usage);
  }
  if (!config.latent && !config.shared_row) return;
  throw Error(
      cat("losses of scales: are measured for K and V apart, and this model caches ",
          config.latent ? "latents, where one scale serves both" : "one row that is K and V"),
      "use --policy amax", ErrorKind::usage);
}

uint64_t loss_bytes(const ModelConfig& config, const Backend& backend, const WindowPlan& plan) {
  MeasuringBackend measuring(backend);
  const ScaleLosses losses(measuring, config, plan);
  return measuring.bytes();
}

ScaleLosses::ScaleLosses(Backend& backend, const ModelConfig& config, const WindowPlan& plan)
    : backend_(backend),
      config_(config),
      all_(backend, plan.longest_window, 1, KvCache::pages_for(plan.longest_window)),
      measured_(backend, most_measured(plan), stretches(plan),
                KvCache::pages_for(plan.longest_window)),
      error_(backend, config, most_measured(plan)) {
  const int64_t most = most_measured(plan);
  const int64_t slots = KvCache::pages_for(plan.longest_window) * kPageSize;
  int64_t width = 0, kv_width = 0, heads = 0;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    if (!config.writes_cache(i)) continue;
    const LayerDescription& layer = config.layer(i);
    heads = std::max(heads, int64_t{layer.n_kv_heads});
    const int64_t head_dim = std::max(layer.k_head_dim, layer.v_head_dim);
    width = std::max(width, config.n_heads * head_dim);
    kv_width = std::max(kv_width, layer.n_kv_heads * head_dim);
  }
  for (const Pool pool : {exact, base, other}) {
    const DType element = pool == exact ? config.dtype : DType::f8_e4m3;
    const auto bytes = slots * kv_width * static_cast<int64_t>(dtype_bytes(element));
    for (Tensor& each : pools_[pool]) each = backend.allocate(DType::u8, Shape{bytes});
    scales_[pool] = backend.allocate(DType::f32, Shape{2, heads});
  }
  const DType activation = backend.activation_dtype(config.dtype);
  chosen_ = backend.allocate(DType::i32, Shape{most});
  q_ = backend.allocate(activation, Shape{most, width});
  x_ = backend.allocate(activation, Shape{most, config.dim});
  for (Tensor& each : attended_) each = backend.allocate(activation, Shape{most, width});
}

void ScaleLosses::begin_layer(int64_t index, const LayerWeights& weights) {
  index_ = index;
  const auto size = static_cast<size_t>(config_.layer(index).n_kv_heads) * kScaleMantissas;
  sums_ = {std::vector<uint64_t>(size), std::vector<uint64_t>(size)};
  error_.begin_layer(index, weights);
}

void ScaleLosses::end_layer(LayerMagnitudes& layer) {
  const auto store = [](std::vector<MagnitudeCounts>& heads, const std::vector<uint64_t>& sums) {
    auto at = sums.begin();
    for (MagnitudeCounts& head : heads) {
      head.losses.assign(at, at + kScaleMantissas);
      at += kScaleMantissas;
    }
  };
  store(layer.k, sums_.k);
  store(layer.v, sums_.v);
}

PagedKv ScaleLosses::cache(Pool k, Pool v) const {
  const LayerDescription& layer = config_.layer(index_);
  PagedKv kv;
  const auto scales = [&](Pool pool, int64_t first) {
    return pool == exact ? nullptr : scales_[pool].view().as<const float>() + first;
  };
  const auto format = [&](Pool pool) {
    return pool == exact ? kv_format(config_.dtype) : KvFormat::e4m3fn;
  };
  kv.k = pools_[k][keys].view().data;
  kv.v = pools_[v][values].view().data;
  kv.k_scale = scales(k, 0);
  kv.v_scale = scales(v, layer.n_kv_heads);
  kv.k_format = format(k);
  kv.v_format = format(v);
  kv.page_size = kPageSize;
  kv.n_kv_heads = static_cast<int32_t>(layer.n_kv_heads);
  kv.head_dim = static_cast<int32_t>(layer.k_head_dim);
  if (!layer.v_in_k) kv.own_v_dim = static_cast<int32_t>(layer.v_head_dim);
  return kv;
}

void ScaleLosses::measure(Forward& forward, const AttentionInputs& inputs,
                          std::span<const int64_t> lengths) {
  download_floats(backend_, inputs.k, k_);
  download_floats(backend_, inputs.v, v_);
  int64_t first = 0;
  for (const int64_t rows : lengths) {
    measure_window(forward, inputs, first, rows);
    first += rows;
  }
}

// Takes the rows of the window that are measured.
void ScaleLosses::choose_rows(int64_t first, int64_t rows) {
  std::vector<int32_t> chosen;
  const std::vector<int32_t> ids(static_cast<size_t>(std::max(rows, kMeasured)));
  all_.clear(kPromptStep);
  all_.add(std::span(ids).first(static_cast<size_t>(rows)), first_tokens(rows));
  all_.upload();
  measured_.clear(kPromptStep);
  for (int64_t begin = 0; begin < rows; begin += kStretch) {
    const int64_t end = std::min(begin + kStretch, rows), count = std::min(kMeasured, end - begin);
    measured_.add(std::span(ids).first(static_cast<size_t>(count)), first_tokens(end));
    for (int64_t i = end - count; i < end; ++i) chosen.push_back(static_cast<int32_t>(first + i));
  }
  measured_.upload();
  backend_.copy_in(chosen_.first(std::ssize(chosen)), host_view(chosen));
}

// Finds the smallest scale of each head that saturates none of the window's values.
void ScaleLosses::find_least(int64_t first, int64_t rows) {
  const LayerDescription& layer = config_.layer(index_);
  const int64_t heads = layer.n_kv_heads;
  least_.clear();
  const auto find = [&](const std::vector<float>& all, int64_t dim) {
    for (int64_t head = 0; head < heads; ++head) {
      float amax = 0;
      for (int64_t row = first; row < first + rows; ++row) {
        const float* x = all.data() + (row * heads + head) * dim;
        for (int64_t i = 0; i < dim; ++i) amax = std::max(amax, std::abs(x[i]));
      }
      least_.push_back(scale_from_amax(amax, KvFormat::e4m3fn, 1));
    }
  };
  find(k_, layer.k_head_dim);
  find(v_, layer.v_head_dim);
}

void ScaleLosses::set_scales(Pool pool, int mantissa) {
  std::vector<float> scales;
  for (const float least : least_) scales.push_back(grid_scale(mantissa, least));
  const TensorView to{scales_[pool].view().data, DType::f32, Shape{std::ssize(scales)}};
  backend_.copy_in(to, host_view(scales));
}

TensorView ScaleLosses::attend(Forward& forward, const AttentionInputs& inputs, const PagedKv& kv,
                               const Tensor& out) {
  const Shape shape{inputs.q.shape[0], inputs.q.shape[1], config_.layer(index_).v_head_dim};
  const TensorView to{out.view().data, out.view().dtype, shape};
  forward.attend(index_, inputs, measured_.batch(), kv, to);
  return to;
}

void ScaleLosses::add(Forward& forward, const TensorView& attended, const TensorView& from,
                      int mantissa, std::vector<uint64_t>& sums) {
  backend_.add(flat(attended), flat(from), -1.0f);
  const std::vector<double>& errors = error_.of(forward, attended);
  const auto heads = static_cast<size_t>(config_.layer(index_).n_kv_heads);
  for (size_t i = 0; i < errors.size(); ++i) {
    sums[i % heads * kScaleMantissas + static_cast<size_t>(mantissa)] += counted(errors[i]);
  }
}

void ScaleLosses::measure_window(Forward& forward, const AttentionInputs& inputs, int64_t first,
                                 int64_t rows) {
  choose_rows(first, rows);
  const int64_t n = measured_.rows();
  const TensorView q{q_.view().data, inputs.q.dtype,
                     Shape{n, inputs.q.shape[1], inputs.q.shape[2]}};
  backend_.embed(flat(inputs.q), chosen_.first(n), flat(q));
  backend_.embed(inputs.x, chosen_.first(n), x_.first(n));
  const AttentionInputs window{rows_of(inputs.q, first, rows), rows_of(inputs.k, first, rows),
                               rows_of(inputs.v, first, rows)};
  const AttentionInputs asked{q, {}, {}, inputs.sinks};
  const auto append = [&](Pool pool) {
    forward.append(window, all_.batch(), cache(pool, pool));
    return pool;
  };
  find_least(first, rows);
  append(exact);
  set_scales(base, 0);
  append(base);
  const TensorView k_exact = attend(forward, asked, cache(exact, base), attended_[0]);
  const TensorView v_exact = attend(forward, asked, cache(base, exact), attended_[1]);
  error_.begin_rows(forward, x_.first(n), k_exact);
  for (int mantissa = 0; mantissa < kScaleMantissas; ++mantissa) {
    Pool pool = base;
    if (mantissa > 0) {
      set_scales(other, mantissa);
      pool = append(other);
    }
    add(forward, attend(forward, asked, cache(pool, base), attended_[2]), k_exact, mantissa,
        sums_.k);
    add(forward, attend(forward, asked, cache(base, pool), attended_[2]), v_exact, mantissa,
        sums_.v);
  }
}

}  // namespace fp8kv
