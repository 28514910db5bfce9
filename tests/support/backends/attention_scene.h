// Attention over a cache of random elements: on a backend, and by its definition in double
// precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/numbers/fp8.h"
#include "support/backends/chosen_blocks.h"
#include "support/backends/compare.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/score_distances.h"

namespace fp8kv::test {

struct Setup {
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t own_v_dim = 0;  // of V; 0: head_dim
  bool latent = false;    // V is the last own_v_dim elements of K
  int64_t page_size = 16;
  DType activations = DType::f16;
  DType cache = DType::f8_e4m3;
  int64_t window = 0;
  int64_t chunk = 0;
  float cap = 0;
  bool bias = false;   // added to scores, up to 5
  bool sinks = false;  // from far below the scores to above all of them
  ChosenBlocks chosen = {};
  ScoreDistances distances = {};
  // For each sequence: its tokens in the cache, and how many of the last ones are rows of this
  // step.
  std::vector<std::pair<int64_t, int64_t>> sequences = {{20, 20}};
  float q_range = 1;

  int64_t v_dim() const { return own_v_dim > 0 ? own_v_dim : head_dim; }
};

inline constexpr int64_t kBiased = 1200;  // positions that have a bias

// The value of element `i` of a cache.
inline double cached(const std::vector<std::byte>& bytes, DType dtype, size_t i) {
  const auto code = static_cast<uint8_t>(bytes[i]);
  uint16_t half = 0;
  float single = 0;
  switch (dtype) {
    case DType::f8_e4m3:
      return fp8_decode<Fp8Format::e4m3fn>(code);
    case DType::f8_e4m3fnuz:
      return fp8_decode<Fp8Format::e4m3fnuz>(code);
    case DType::f8_e5m2:
      return fp8_decode<Fp8Format::e5m2>(code);
    case DType::f8_e5m2fnuz:
      return fp8_decode<Fp8Format::e5m2fnuz>(code);
    case DType::f16:
      std::memcpy(&half, &bytes[2 * i], 2);
      return f16_to_float(half);
    case DType::bf16:
      std::memcpy(&half, &bytes[2 * i], 2);
      return bf16_to_float(half);
    default:
      std::memcpy(&single, &bytes[4 * i], 4);
      return single;
  }
}

struct Expected {
  std::vector<double> values, allowed;
};

class Scene {
 public:
  Scene(const Setup& setup, uint64_t seed) : setup_(setup) {
    for (const auto& [context, rows] : setup.sequences) {
      max_pages_ = std::max(max_pages_, (context + setup.page_size - 1) / setup.page_size);
    }
    const auto n_seqs = static_cast<int64_t>(setup.sequences.size());
    n_pages_ = max_pages_ * n_seqs + 1;
    for (int64_t s = 0; s < n_seqs; ++s) {
      // Pages are handed out backwards and mixed. Page 0 is NaN, and belongs to nobody.
      for (int64_t p = 0; p < max_pages_; ++p) {
        pages_.push_back(static_cast<int32_t>(n_pages_ - 1 - (p * n_seqs + s)));
      }
      const auto [context, rows] = setup.sequences[static_cast<size_t>(s)];
      for (int64_t t = context - rows; t < context; ++t) {
        positions_.push_back(static_cast<int32_t>(t));
        sequence_.push_back(s);
        // A position has the same query whichever rows are in the step.
        add_query(seed * 1000003 + static_cast<uint64_t>(s * 65536 + t));
      }
      indptr_.push_back(static_cast<int32_t>(positions_.size()));
    }
    for (int64_t i = 0; i < setup.n_heads * kBiased; ++i) {
      bias_.push_back(static_cast<float>(i * 13 % 41) / 4 - 5);
    }
    for (int64_t head = 0; head < setup.n_heads; ++head) {
      sinks_.push_back(static_cast<float>(head % 4) * 4 - 6);
    }
    fill(k_, setup.head_dim, seed + 1, 3);
    fill(v_, setup.v_dim(), seed + 2, 1);
    for (size_t i = 0; i < k_.size() / dtype_bytes(setup.cache); ++i) {
      k_values_.push_back(cached(k_, setup.cache, i));
    }
    for (size_t i = 0; i < v_.size() / dtype_bytes(setup.cache); ++i) {
      v_values_.push_back(cached(v_, setup.cache, i));
    }
    for (int64_t h = 0; h < setup.n_kv_heads; ++h) {
      k_scale_.push_back(is_fp8() ? 0.01f * static_cast<float>(h + 1) : 1);
      v_scale_.push_back(!is_fp8()      ? 1
                         : setup.latent ? k_scale_.back()
                                        : 0.003f * static_cast<float>(h + 2));
    }
  }

  std::vector<float> run(Backend& backend) const {
    return run(backend, [](const auto& attend) { attend(); });
  }

  // Calls submit(attend), where attend() gives the backend the op.
  template <typename Submit>
  std::vector<float> run(Backend& backend, const Submit& submit) const {
    const auto n = static_cast<int64_t>(positions_.size());
    const auto n_seqs = static_cast<int64_t>(setup_.sequences.size());
    const Shape shape{n, setup_.n_heads, setup_.head_dim};
    const Tensor q = put(backend, q_, setup_.activations, shape);
    const Tensor out =
        backend.allocate(setup_.activations, Shape{n, setup_.n_heads, setup_.v_dim()});
    const Tensor positions = put(backend, positions_, {n});
    const Tensor indptr = put(backend, indptr_, {n_seqs + 1});
    const Tensor pages = put(backend, pages_, {n_seqs, max_pages_});
    std::vector<int32_t> lengths;
    for (const auto& [context, rows] : setup_.sequences) {
      lengths.push_back(static_cast<int32_t>(context));
    }
    const Tensor context = put(backend, lengths, {n_seqs});
    const Tensor k_scale = put(backend, k_scale_, DType::f32, {setup_.n_kv_heads});
    const Tensor v_scale = put(backend, v_scale_, DType::f32, {setup_.n_kv_heads});
    const auto pool = [&](const std::vector<std::byte>& bytes, int64_t dim) {
      const Shape rows{n_pages_, setup_.n_kv_heads, setup_.page_size, dim};
      return backend.upload({bytes.data(), setup_.cache, rows}, nullptr);
    };
    const Tensor k_pool = pool(k_, setup_.head_dim), v_pool = pool(v_, setup_.v_dim());
    PagedKv kv;
    kv.k = k_pool.view().data;
    kv.v = v_pool.view().data;
    if (is_fp8()) {
      kv.k_scale = k_scale.view().as<const float>();
      kv.v_scale = v_scale.view().as<const float>();
    }
    kv.k_format = kv.v_format = kv_format(setup_.cache);
    kv.page_size = static_cast<int32_t>(setup_.page_size);
    kv.n_kv_heads = static_cast<int32_t>(setup_.n_kv_heads);
    kv.head_dim = static_cast<int32_t>(setup_.head_dim);
    if (setup_.latent) {
      kv.v_in_k = static_cast<int32_t>(setup_.v_dim());
      const int64_t before = setup_.head_dim - setup_.v_dim();
      kv.v = k_pool.view().data + static_cast<size_t>(before) * dtype_bytes(setup_.cache);
    } else {
      kv.own_v_dim = static_cast<int32_t>(setup_.own_v_dim);
    }
    AttentionOptions options{scale(), setup_.window, setup_.chunk, setup_.cap};
    const Tensor bias = put(backend, bias_, DType::f32, {setup_.n_heads, kBiased});
    if (setup_.bias) options.bias = bias.view();
    const Tensor sinks = put(backend, sinks_, setup_.activations, {setup_.n_heads});
    if (setup_.sinks) options.sinks = sinks.view();
    Tensor states, bank, growth;
    if (setup_.distances.dim > 0) {
      const auto& [dim, extent, grows] = setup_.distances;
      std::vector<std::pair<int64_t, int64_t>> rows;
      for (size_t i = 0; i < positions_.size(); ++i) rows.emplace_back(sequence_[i], positions_[i]);
      states = put(backend, setup_.distances.states(rows, setup_.n_heads), setup_.activations,
                   {n, setup_.n_heads, dim});
      bank = put(backend, setup_.distances.banks(), setup_.activations, {dim, extent});
      growth = put(backend, setup_.distances.growths(kBiased), DType::f32, {kBiased});
      options.distances = DistanceBias{states.view(), bank.view()};
      if (grows) options.distances->growth = growth.view();
    }
    Tensor chosen;
    if (setup_.chosen.count > 0) {
      chosen = put(backend, setup_.chosen.all(positions_, setup_.n_kv_heads),
                   setup_.chosen.shape(n, setup_.n_kv_heads));
      options.chosen = chosen.view();
      options.chosen_block = setup_.chosen.block;
      options.chosen_pooled = setup_.chosen.pooled;
    }
    const Batch batch{positions.view(), positions.view(), indptr.view(), pages.view(),
                      context.view()};
    submit([&] { backend.attention(q.view(), kv, batch, options, out.view()); });
    return get(backend, out.view());
  }

  // The expected result of run(), element by element.
  Expected expected() const {
    Expected all;
    for (int64_t row = 0; row < static_cast<int64_t>(positions_.size()); ++row) {
      for (int64_t head = 0; head < setup_.n_heads; ++head) add_row(row, head, all);
    }
    return all;
  }

 private:
  bool is_fp8() const { return fp8_format(setup_.cache).has_value(); }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(setup_.head_dim)); }

  void add_query(uint64_t seed) {
    Rng rng(seed);
    for (int64_t i = 0; i < setup_.n_heads * setup_.head_dim; ++i) {
      const auto x = static_cast<float>((rng.uniform() * 2 - 1) * double{setup_.q_range});
      q_.push_back(rounded_to(x, setup_.activations));
    }
  }

  // Random elements; page 0 and places past a sequence's end are NaN.
  void fill(std::vector<std::byte>& bytes, int64_t dim, uint64_t seed, float range) {
    const int64_t per_page = setup_.n_kv_heads * setup_.page_size * dim;
    const auto count = static_cast<size_t>(n_pages_ * per_page);
    const size_t size = dtype_bytes(setup_.cache);
    const std::optional<Fp8Format> format = fp8_format(setup_.cache);
    const uint8_t nan = format && fp8_spec(*format).fnuz ? 0x80 : 0xFF;
    bytes.assign(count * size, std::byte{nan});
    Rng rng(seed);
    for (size_t s = 0; s < setup_.sequences.size(); ++s) {
      for (int64_t t = 0; t < setup_.sequences[s].first; ++t) {
        const int64_t page =
            pages_[s * static_cast<size_t>(max_pages_) + static_cast<size_t>(t / setup_.page_size)];
        for (int64_t h = 0; h < setup_.n_kv_heads; ++h) {
          for (int64_t d = 0; d < dim; ++d) {
            put_element(bytes, static_cast<size_t>(cache_row(page, h, t) * dim + d), rng, range);
          }
        }
      }
    }
  }

  void put_element(std::vector<std::byte>& bytes, size_t i, Rng& rng, float range) const {
    if (is_fp8()) {  // any finite code
      do {
        bytes[i] = static_cast<std::byte>(rng.next() & 0xFF);
      } while (!std::isfinite(cached(bytes, setup_.cache, i)) ||
               std::abs(cached(bytes, setup_.cache, i)) > 448);
      return;
    }
    const auto x = static_cast<float>((rng.uniform() * 2 - 1) * double{range});
    const std::vector<std::byte> code = encoded_as({x}, setup_.cache);
    std::copy(code.begin(), code.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(i * code.size()));
  }

  int64_t cache_row(int64_t page, int64_t head, int64_t token) const {
    return (page * setup_.n_kv_heads + head) * setup_.page_size + token % setup_.page_size;
  }
  int64_t row_of(int64_t sequence, int64_t head, int64_t token) const {
    const size_t at = static_cast<size_t>(sequence * max_pages_ + token / setup_.page_size);
    return cache_row(pages_[at], head, token);
  }
  double k_value(int64_t sequence, int64_t head, int64_t token, int64_t d) const {
    const int64_t at = row_of(sequence, head, token) * setup_.head_dim + d;
    return k_values_[static_cast<size_t>(at)];
  }
  double v_value(int64_t sequence, int64_t head, int64_t token, int64_t d) const {
    if (setup_.latent) return k_value(sequence, head, token, setup_.head_dim - setup_.v_dim() + d);
    const int64_t at = row_of(sequence, head, token) * setup_.v_dim() + d;
    return v_values_[static_cast<size_t>(at)];
  }

  // Adds the expected values of one row and head, and the error allowed for the kernels' rounding.
  // Scores are sums of head_dim products in f32, of queries with at least 11 bits. Weights are
  // rounded to the 16-bit type in which values are multiplied.
  void add_row(int64_t row, int64_t head, Expected& to) const {
    const int64_t s = sequence_[static_cast<size_t>(row)];
    const int64_t h = head / (setup_.n_heads / setup_.n_kv_heads);
    const int64_t end = positions_[static_cast<size_t>(row)] + 1;
    const int64_t begin = setup_.chunk > 0    ? (end - 1) / setup_.chunk * setup_.chunk
                          : setup_.window > 0 ? std::max<int64_t>(0, end - setup_.window)
                                              : 0;
    const float* q = &q_[static_cast<size_t>((row * setup_.n_heads + head) * setup_.head_dim)];
    const double k_scale = double{k_scale_[static_cast<size_t>(h)]} * double{scale()};
    std::vector<double> weights;
    double max = -INFINITY, score_error = 0;
    for (int64_t t = begin; t < end; ++t) {
      if (!setup_.chosen.has(end - 1, h, t)) {
        weights.push_back(-INFINITY);
        continue;
      }
      double dot = 0, magnitudes = 0, flushed = 0;
      for (int64_t d = 0; d < setup_.head_dim; ++d) {
        const double product = q[d] * k_value(s, h, t, d);
        dot += product;
        magnitudes += std::abs(product);
        flushed += least_kept() * std::abs(double{q[d]});
      }
      weights.push_back(dot * k_scale);
      if (setup_.cap > 0) weights.back() = setup_.cap * std::tanh(weights.back() / setup_.cap);
      if (setup_.bias) weights.back() += double{bias_[static_cast<size_t>(head * kBiased + t)]};
      if (setup_.distances.dim > 0) {
        weights.back() += setup_.distances.bias(s, end - 1, head, t);
      }
      max = std::max(max, weights.back());
      score_error = std::max(
          score_error,
          (static_cast<double>(setup_.head_dim + 8) * kUnitF32 * magnitudes + flushed) * k_scale);
    }
    if (setup_.bias) score_error += kUnitF32 * 5;
    score_error += kUnitF32 * setup_.distances.roundings();
    // tanh passes that error on, and adds up to ten roundings of its own.
    score_error += 10 * kUnitF32 * double{setup_.cap};
    const double sink = setup_.sinks ? double{sinks_[static_cast<size_t>(head)]} : -INFINITY;
    max = std::max(max, sink);
    double sum = std::exp(sink - max);
    for (double& weight : weights) sum += weight = std::exp(weight - max);
    const double weight_unit = setup_.activations == DType::f32 ? 0
                               : setup_.cache == DType::bf16    ? 0x1p-8
                                                                : 0x1p-11;
    const double lost = weight_unit > 0 ? 0x1p-25 * largest_value(s, h, begin, end) : 0;
    for (int64_t d = 0; d < setup_.v_dim(); ++d) {
      double value = 0, magnitudes = 0;
      for (int64_t t = begin; t < end; ++t) {
        const double term = weights[static_cast<size_t>(t - begin)] / sum * v_value(s, h, t, d) *
                            double{v_scale_[static_cast<size_t>(h)]};
        value += term;
        magnitudes += std::abs(term);
      }
      const double roundings = 2.0 * static_cast<double>(end - begin) + 16;
      // An error e of the scores changes a weight by a factor within exp(2e). Weights below f16's
      // normal range lose up to 2^-25 each.
      to.values.push_back(value);
      to.allowed.push_back((2 * score_error + weight_unit + roundings * kUnitF32) * magnitudes +
                           unit_of(setup_.activations) * std::abs(value) + lost +
                           least_kept() * double{v_scale_[static_cast<size_t>(h)]} + 1e-30);
    }
  }

  // Matrix products of some devices (gfx90a) flush numbers below f16's normal range to 0. e5m2 has
  // codes there that no shift brings into the range.
  double least_kept() const {
    const std::optional<Fp8Format> format = fp8_format(setup_.cache);
    return format && fp8_spec(*format).mantissa_bits == 2 ? 0x1p-14 : 0;
  }

  double largest_value(int64_t s, int64_t h, int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t t = begin; t < end; ++t) {
      double largest = 0;
      for (int64_t d = 0; d < setup_.v_dim(); ++d) {
        largest = std::max(largest, std::abs(v_value(s, h, t, d)));
      }
      sum += largest * double{v_scale_[static_cast<size_t>(h)]};
    }
    return sum;
  }

  Setup setup_;
  int64_t max_pages_ = 1;
  int64_t n_pages_ = 0;
  std::vector<int32_t> pages_, positions_;
  std::vector<int32_t> indptr_ = {0};
  std::vector<int64_t> sequence_;
  std::vector<float> q_, k_scale_, v_scale_, bias_, sinks_;
  std::vector<std::byte> k_, v_;
  std::vector<double> k_values_, v_values_;  // the values of K and V
};

}  // namespace fp8kv::test
