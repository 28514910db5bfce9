// Attention over a cache of random elements: on the CPU backend, and by its definition in double
// precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "core/numbers/fp8.h"
#include "core/numbers/host_view.h"
#include "support/backends/chosen_blocks.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/backends/score_distances.h"

namespace fp8kv::test {

// A batch of sequences over one paged cache, with the cache's values in double.
struct CpuAttentionSetup {
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t own_v_dim = 0;  // of V; 0: head_dim
  int64_t page_size = 16;
  DType dtype = DType::f32;
  int64_t window = 0;
  int64_t chunk = 0;
  float cap = 0;
  bool bias = false;   // added to scores, up to 5
  bool sinks = false;  // from far below the scores to above all of them
  DType sink_dtype = DType::f32;
  ChosenBlocks chosen = {};
  ScoreDistances distances = {};
  bool exact_scales = false;             // powers of two
  std::optional<DType> rounded_to = {};  // values are first rounded as this fp8 type would
  DType model = DType::f16;              // dtype that Q, K and V were rounded to
  int power = 0;                         // multiplies Q by 2^power; the scale of scores undoes it
  // For each sequence: its tokens in the cache, and how many of the last ones are rows of this
  // step.
  std::vector<std::pair<int64_t, int64_t>> sequences = {{20, 20}};

  int64_t v_dim() const { return own_v_dim > 0 ? own_v_dim : head_dim; }
};

// Stores a value as an element of a cache, and loads it again.
inline float round_trip(DType dtype, float x, float scale, std::byte* to) {
  switch (dtype) {
    case DType::f16:
      F16Element::store(x, scale, to);
      return F16Element::load(to);
    case DType::bf16:
      Bf16Element::store(x, scale, to);
      return Bf16Element::load(to);
    case DType::f8_e4m3:
      Fp8Element<Fp8Format::e4m3fn>::store(x, scale, to);
      return Fp8Element<Fp8Format::e4m3fn>::load(to);
    case DType::f8_e4m3fnuz:
      Fp8Element<Fp8Format::e4m3fnuz>::store(x, scale, to);
      return Fp8Element<Fp8Format::e4m3fnuz>::load(to);
    case DType::f8_e5m2:
      Fp8Element<Fp8Format::e5m2>::store(x, scale, to);
      return Fp8Element<Fp8Format::e5m2>::load(to);
    case DType::f8_e5m2fnuz:
      Fp8Element<Fp8Format::e5m2fnuz>::store(x, scale, to);
      return Fp8Element<Fp8Format::e5m2fnuz>::load(to);
    default:
      F32Element::store(x, scale, to);
      return x;
  }
}

class CpuAttentionScene {
 public:
  CpuAttentionScene(Backend& backend, const CpuAttentionSetup& setup, uint64_t seed)
      : setup_(setup) {
    Rng rng(seed);
    int64_t max_pages = 1;
    for (const auto& [context, rows] : setup.sequences) {
      max_pages = std::max(max_pages, (context + setup.page_size - 1) / setup.page_size);
      n_rows_ += rows;
    }
    const auto n_sequences = static_cast<int64_t>(setup.sequences.size());
    // Pages are handed out backwards and mixed. One page is NaN, and nobody may read it.
    n_pages_ = max_pages * n_sequences + 1;
    fill_cache(rng, max_pages);
    for (int64_t i = 0; i < setup.n_heads * kBiased; ++i) {
      bias_.push_back(static_cast<float>(i * 13 % 41) / 4 - 5);
    }
    for (int64_t head = 0; head < setup.n_heads; ++head) {
      sinks_.push_back(static_cast<float>(head % 4) * 4 - 6);
    }
    std::vector<int32_t> positions, slots, indptr = {0}, context_len;
    for (int64_t s = 0; s < n_sequences; ++s) {
      const auto [context, rows] = setup.sequences[s];
      for (int64_t t = context - rows; t < context; ++t) {
        positions.push_back(static_cast<int32_t>(t));
        slots.push_back(0);
        row_sequence_.push_back(s);
        // A position has the same query whichever rows are in the step.
        Rng row_rng(seed * 1000003 + static_cast<uint64_t>(s * 65536 + t));
        auto row = random_floats(row_rng, setup.n_heads * setup.head_dim);
        for (float& x : row) x = std::ldexp(of_model(x), setup.power);
        q_.insert(q_.end(), row.begin(), row.end());
      }
      indptr.push_back(indptr.back() + static_cast<int32_t>(rows));
      context_len.push_back(static_cast<int32_t>(context));
    }
    positions_ = positions;
    tensors_.push_back(tensor_of(backend, positions, Shape{n_rows_}));
    tensors_.push_back(tensor_of(backend, slots, Shape{n_rows_}));
    tensors_.push_back(tensor_of(backend, indptr, Shape{n_sequences + 1}));
    tensors_.push_back(tensor_of(backend, page_table_, Shape{n_sequences, max_pages}));
    tensors_.push_back(tensor_of(backend, context_len, Shape{n_sequences}));
  }

  std::vector<float> run(Backend& backend) const {
    const Shape shape{n_rows_, setup_.n_heads, setup_.head_dim};
    const Tensor q = tensor_of(backend, q_, shape);
    const Tensor out = backend.allocate(DType::f32, Shape{n_rows_, setup_.n_heads, setup_.v_dim()});
    const Batch batch{tensors_[0].view(), tensors_[1].view(), tensors_[2].view(),
                      tensors_[3].view(), tensors_[4].view()};
    PagedKv kv;
    kv.k = const_cast<std::byte*>(k_bytes_.data());
    kv.v = const_cast<std::byte*>(v_bytes_.data());
    if (fp8_format(setup_.dtype)) {
      kv.k_scale = k_scale_.data();
      kv.v_scale = v_scale_.data();
    }
    kv.k_format = kv.v_format = kv_format(setup_.dtype);
    kv.page_size = static_cast<int32_t>(setup_.page_size);
    kv.n_kv_heads = static_cast<int32_t>(setup_.n_kv_heads);
    kv.head_dim = static_cast<int32_t>(setup_.head_dim);
    kv.own_v_dim = static_cast<int32_t>(setup_.own_v_dim);
    AttentionOptions options{scale(), setup_.window, setup_.chunk, setup_.cap};
    if (setup_.bias) options.bias = host_view(bias_, Shape{setup_.n_heads, kBiased});
    const Elements sinks(sinks_, setup_.sink_dtype, {setup_.n_heads});
    if (setup_.sinks) options.sinks = sinks.view();
    std::vector<std::pair<int64_t, int64_t>> rows;
    for (size_t i = 0; i < positions_.size(); ++i) {
      rows.emplace_back(row_sequence_[i], positions_[i]);
    }
    const ScoreDistances& distances = setup_.distances;
    const std::vector<float> states = distances.states(rows, setup_.n_heads);
    const std::vector<float> growth = distances.growths(kBiased);
    const Elements bank(distances.banks(), setup_.sink_dtype, {distances.dim, distances.extent});
    if (distances.dim > 0) {
      options.distances = DistanceBias{
          host_view(states, Shape{n_rows_, setup_.n_heads, distances.dim}), bank.view()};
      if (distances.grows) options.distances->growth = host_view(growth, Shape{kBiased});
    }
    const std::vector<int32_t> chosen = setup_.chosen.all(positions_, setup_.n_kv_heads);
    if (setup_.chosen.count > 0) {
      options.chosen = host_view(chosen, setup_.chosen.shape(n_rows_, setup_.n_kv_heads));
      options.chosen_block = setup_.chosen.block;
      options.chosen_pooled = setup_.chosen.pooled;
    }
    options.rounded_to = setup_.model;
    backend.attention(q.view(), kv, batch, options, out.view());
    return floats_of(backend, out.view());
  }

  // The definition, computed in double; the same for every instruction set.
  struct Definition {
    std::vector<double> expected, allowed;
  };
  Definition definition() const {
    Definition by_rows;
    for (int64_t row = 0; row < n_rows_; ++row) {
      for (int64_t head = 0; head < setup_.n_heads; ++head) {
        add_row(row, head, by_rows.expected, by_rows.allowed);
      }
    }
    return by_rows;
  }

  float scale() const {
    return std::ldexp(1.0f / std::sqrt(static_cast<float>(setup_.head_dim)), -setup_.power);
  }

 private:
  static constexpr int64_t kBiased = 1200;  // positions that have a bias

  void fill_cache(Rng& rng, int64_t max_pages) {
    const int64_t rows = n_pages_ * setup_.n_kv_heads * setup_.page_size;
    const size_t element = dtype_bytes(setup_.dtype);
    k_bytes_.assign(static_cast<size_t>(rows * setup_.head_dim) * element, std::byte{0xFF});
    v_bytes_.assign(static_cast<size_t>(rows * setup_.v_dim()) * element, std::byte{0xFF});
    for (int64_t h = 0; h < setup_.n_kv_heads; ++h) {
      k_scale_.push_back(setup_.exact_scales ? 0x1p-7f : 0.01f * static_cast<float>(h + 1));
      v_scale_.push_back(setup_.exact_scales ? 0x1p-9f : 0.003f * static_cast<float>(h + 2));
    }
    const auto n_sequences = static_cast<int64_t>(setup_.sequences.size());
    for (int64_t s = 0; s < n_sequences; ++s) {
      for (int64_t p = 0; p < max_pages; ++p) {
        page_table_.push_back(static_cast<int32_t>(n_pages_ - 1 - (p * n_sequences + s)));
      }
      k_.emplace_back();
      v_.emplace_back();
      for (int64_t t = 0; t < setup_.sequences[s].first; ++t) {
        const int64_t page = page_table_[s * max_pages + t / setup_.page_size];
        for (int64_t h = 0; h < setup_.n_kv_heads; ++h) {
          const int64_t row =
              (page * setup_.n_kv_heads + h) * setup_.page_size + t % setup_.page_size;
          for (int64_t d = 0; d < setup_.head_dim; ++d) {
            k_[s].push_back(put(rng, k_bytes_, row * setup_.head_dim + d, k_scale_[h], 3));
          }
          for (int64_t d = 0; d < setup_.v_dim(); ++d) {
            v_[s].push_back(put(rng, v_bytes_, row * setup_.v_dim() + d, v_scale_[h], 1));
          }
        }
      }
    }
  }

  float of_model(float x) const {
    std::byte bytes[4];
    return round_trip(setup_.model, x, 1.0f, bytes);
  }

  double put(Rng& rng, std::vector<std::byte>& bytes, int64_t at, float scale, double range) {
    float x = of_model(static_cast<float>(random_value(rng) * range));
    std::byte code;
    if (setup_.rounded_to) x = round_trip(*setup_.rounded_to, x, scale, &code) * scale;
    const float used = fp8_format(setup_.dtype) ? scale : 1.0f;
    return double{round_trip(setup_.dtype, x, used,
                             bytes.data() + at * static_cast<int64_t>(dtype_bytes(setup_.dtype)))} *
           double{used};
  }

  void add_row(int64_t row, int64_t head, std::vector<double>& expected,
               std::vector<double>& allowed) const {
    const int64_t s = row_sequence_[row];
    const int64_t h = head / (setup_.n_heads / setup_.n_kv_heads);
    const int64_t end = positions_[row] + 1;
    const int64_t begin = setup_.chunk > 0    ? (end - 1) / setup_.chunk * setup_.chunk
                          : setup_.window > 0 ? std::max<int64_t>(0, end - setup_.window)
                                              : 0;
    std::vector<double> weights;
    double max = -INFINITY, score_error = 0;
    for (int64_t t = begin; t < end; ++t) {
      if (!setup_.chosen.has(end - 1, h, t)) {
        weights.push_back(-INFINITY);
        continue;
      }
      double dot = 0, magnitudes = 0;
      for (int64_t d = 0; d < setup_.head_dim; ++d) {
        const double product = double{q_[(row * setup_.n_heads + head) * setup_.head_dim + d]} *
                               k_[s][(t * setup_.n_kv_heads + h) * setup_.head_dim + d];
        dot += product;
        magnitudes += std::abs(product);
      }
      weights.push_back(dot * double{scale()});
      if (setup_.cap > 0) weights.back() = setup_.cap * std::tanh(weights.back() / setup_.cap);
      if (setup_.bias) weights.back() += double{bias_[static_cast<size_t>(head * kBiased + t)]};
      if (setup_.distances.dim > 0) {
        weights.back() += setup_.distances.bias(s, end - 1, head, t);
      }
      max = std::max(max, weights.back());
      // head_dim additions, and three roundings of the scale and its product.
      score_error = std::max(score_error, static_cast<double>(setup_.head_dim + 4) * kUnitF32 *
                                              magnitudes * double{scale()});
    }
    if (setup_.bias) score_error += kUnitF32 * 5;
    score_error += kUnitF32 * setup_.distances.roundings();
    // tanh passes that error on, and adds a few roundings of its own.
    score_error += 8 * kUnitF32 * double{setup_.cap};
    const double sink = setup_.sinks ? double{sinks_[static_cast<size_t>(head)]} : -INFINITY;
    max = std::max(max, sink);
    double sum = std::exp(sink - max);
    for (double& weight : weights) sum += weight = std::exp(weight - max);
    for (int64_t d = 0; d < setup_.v_dim(); ++d) {
      double value = 0, magnitudes = 0;
      for (int64_t t = begin; t < end; ++t) {
        const double term =
            weights[t - begin] / sum * v_[s][(t * setup_.n_kv_heads + h) * setup_.v_dim() + d];
        value += term;
        magnitudes += std::abs(term);
      }
      // An error e of the scores changes every weight by a factor within exp(2e). The rest is exp
      // (2 units each) and the sums: of weights in 16 lanes, of values in blocks of 256 tokens.
      const double roundings = 8 + 256 + 2.0 * static_cast<double>(end - begin) / 256.0;
      expected.push_back(value);
      allowed.push_back((2 * score_error + roundings * kUnitF32) * magnitudes + 1e-30);
    }
  }

  CpuAttentionSetup setup_;
  int64_t n_rows_ = 0;
  int64_t n_pages_ = 0;
  std::vector<int32_t> page_table_;
  std::vector<int32_t> positions_;
  std::vector<int64_t> row_sequence_;
  std::vector<std::byte> k_bytes_, v_bytes_;
  std::vector<float> k_scale_, v_scale_, q_, bias_, sinks_;
  // [tokens, n_kv_heads, head_dim] and [.., v_dim] of each sequence.
  std::vector<std::vector<double>> k_, v_;
  std::vector<Tensor> tensors_;
};

// The rows of a long prompt. 60 are several tiles too, and take a sanitizer less long.
constexpr int64_t many(int64_t rows) {
  return kSlow ? std::min<int64_t>(rows, 60) : rows;
}

// The types of a cache.
inline constexpr DType kCacheTypes[] = {DType::f32,        DType::f16,         DType::bf16,
                                        DType::f8_e4m3,    DType::f8_e4m3fnuz, DType::f8_e5m2,
                                        DType::f8_e5m2fnuz};

}  // namespace fp8kv::test
