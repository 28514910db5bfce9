// Fused ops on random tensors: by their kernel, and by the ops that they combine. The kernel leaves
// the scratch memory untouched, which shows that it ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/histogram.h"
#include "support/backends/gpu_backends.h"

namespace fp8kv::test {

using Bytes = std::vector<std::byte>;

// Tensors of one case on a backend. Every maker gives the same tensors for the same calls.
class FusedMaker {
 public:
  FusedMaker(Backend& backend, DType dtype) : backend_(backend), dtype_(dtype) {}

  TensorView values(const Shape& shape, double largest, std::optional<DType> dtype = {}) {
    std::vector<float> all(static_cast<size_t>(shape.elements()));
    for (float& x : all) x = static_cast<float>((rng_.uniform() * 2 - 1) * largest);
    return keep(put(backend_, all, dtype.value_or(dtype_), shape));
  }
  TensorView ints(const std::vector<int32_t>& all) {
    return keep(put(backend_, all, {static_cast<int64_t>(all.size())}));
  }
  TensorView floats(const std::vector<float>& all) {
    return keep(put(backend_, all, DType::f32, {static_cast<int64_t>(all.size())}));
  }
  // Memory filled with a pattern, in which every written byte shows.
  TensorView pattern(DType dtype, const Shape& shape) {
    Tensor tensor = backend_.allocate(dtype, shape);
    const Bytes bytes(tensor.view().bytes(), kPattern);
    backend_.copy_in(tensor.view(), {bytes.data(), dtype, shape});
    return keep(std::move(tensor));
  }
  Linear linear(int64_t out_dim, int64_t in_dim, bool bias) {
    Linear made{values({out_dim, in_dim}, 1.0), {}};
    if (bias) made.bias = values({out_dim}, 2.0);
    return made;
  }

 private:
  static constexpr std::byte kPattern{0x5A};

  TensorView keep(Tensor tensor) {
    kept_.push_back(std::move(tensor));
    return kept_.back().view();
  }

  Backend& backend_;
  DType dtype_;
  Rng rng_{1};
  std::vector<Tensor> kept_;
};

// The two ways to compute that should be equal.
enum class FusedWay { fused, composed };

// The sizes and types of one case.
struct FusedCase {
  DType dtype = DType::bf16;
  int64_t dim = 72;
  bool bias = false;
  int64_t computed_as = 0;
  // The rows of the step; there are five.
  int64_t first_row = 0;
  int64_t rows = 1;
  // For attention.
  DType cache = DType::f8_e4m3;
  DType round_to = DType::bf16;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t rotary_dim = 0;  // 0: head_dim
  RopePairs pairs = RopePairs::halves;
  bool observed = false;
  // For the feed-forward block.
  int64_t hidden_dim = 35;
  Activation activation = Activation::silu;
  // For the norm.
  NormKind norm = NormKind::rms;
  float weight_offset = 0.0f;
};

// Whether the fused kernel ran, and the bytes of all results.
struct FusedOutcome {
  bool took_kernel = false;
  std::vector<Bytes> results;
  bool operator==(const FusedOutcome& other) const { return results == other.results; }
};

// The rows of the step.
inline TensorView rows_of(const TensorView& all, const FusedCase& c) {
  const auto row = static_cast<int64_t>(all.bytes()) / all.shape[0];
  return {all.data + c.first_row * row, all.dtype, {c.rows, all.shape[1]}};
}

// The rows that enter an op, and the norm that they pass first.
struct NormedRows {
  TensorView x;
  InputNorm entry;
  Bytes scratch_before;
};

// Rows with a norm, the same for the same maker.
inline NormedRows normed(Backend& backend, FusedMaker& make, const FusedCase& c) {
  NormedRows made;
  made.x = rows_of(make.values({5, c.dim}, 3.0), c);
  made.entry.norm = Norm{.kind = c.norm,
                         .eps = 1e-5f,
                         .weight_offset = c.weight_offset,
                         .weight = make.values({c.dim}, 1.0)};
  made.entry.scratch = make.pattern(c.dtype, {c.rows, c.dim});
  made.scratch_before = bytes_of(backend, made.entry.scratch);
  return made;
}

// The outcome of an op with these results.
inline FusedOutcome outcome(Backend& backend, const NormedRows& in,
                            const std::vector<TensorView>& results) {
  FusedOutcome made;
  made.took_kernel = bytes_of(backend, in.entry.scratch) == in.scratch_before;
  for (const TensorView& each : results) made.results.push_back(bytes_of(backend, each));
  return made;
}

// Gate and up of a feed-forward block, and their activation.
inline FusedOutcome hidden(Backend& backend, const FusedCase& c, FusedWay way) {
  FusedMaker make(backend, c.dtype);
  const NormedRows in = normed(backend, make, c);
  const auto project = [&] {
    const Linear linear = make.linear(c.hidden_dim, c.dim, c.bias);
    return Projection{linear.weight, linear.bias, make.pattern(c.dtype, {c.rows, c.hidden_dim})};
  };
  const Projection gate = project(), up = project();
  const HiddenProducts products{gate, up, c.activation};
  backend.compute_as({.rows = c.computed_as});
  if (way == FusedWay::fused) backend.hidden(in.x, in.entry, products);
  if (way == FusedWay::composed) backend.Backend::hidden(in.x, in.entry, products);
  return outcome(backend, in, {gate.out});
}

// A cache of three pages of four tokens. The rows go into the last page, backwards.
inline PagedKv paged(FusedMaker& make, const FusedCase& c, std::vector<TensorView>& pools) {
  constexpr int32_t kPages = 3, kPageSize = 4;
  PagedKv kv;
  kv.k_format = kv.v_format = kv_format(c.cache);
  kv.page_size = kPageSize;
  kv.n_kv_heads = static_cast<int32_t>(c.n_kv_heads);
  kv.head_dim = static_cast<int32_t>(c.head_dim);
  for (void** pool : {&kv.k, &kv.v}) {
    pools.push_back(make.pattern(c.cache, {kPages, c.n_kv_heads, kPageSize, c.head_dim}));
    *pool = pools.back().data;
  }
  if (fp8_format(c.cache)) {
    // The second scale of K and the first of V make values saturate.
    kv.k_scale = make.floats({0.07f, 0.002f}).as<const float>();
    kv.v_scale = make.floats({0.001f, 0.3f}).as<const float>();
  }
  return kv;
}

// Q, K and V of rows, appended to a cache.
inline FusedOutcome project_append(Backend& backend, const FusedCase& c, FusedWay way) {
  FusedMaker make(backend, c.dtype);
  const NormedRows in = normed(backend, make, c);
  const int64_t q_dim = c.n_heads * c.head_dim, kv_dim = c.n_kv_heads * c.head_dim;
  const AttentionWeights weights{make.linear(q_dim, c.dim, c.bias),
                                 make.linear(kv_dim, c.dim, c.bias),
                                 make.linear(kv_dim, c.dim, c.bias)};
  std::vector<TensorView> results;
  RopeAppend args;
  args.kv = paged(make, c, results);
  args.q = make.pattern(c.dtype, {c.rows, c.n_heads, c.head_dim});
  args.k = make.pattern(c.dtype, {c.rows, c.n_kv_heads, c.head_dim});
  args.v = make.pattern(c.dtype, {c.rows, c.n_kv_heads, c.head_dim});
  args.rope = make.values({8, c.rotary_dim > 0 ? c.rotary_dim : c.head_dim}, 1.0, DType::f32);
  args.pairs = c.pairs;
  args.round_to = c.round_to;
  std::vector<int32_t> positions, slots;
  for (int64_t row = c.first_row; row < c.first_row + c.rows; ++row) {
    positions.push_back(static_cast<int32_t>(7 - row * 3 % 8));
    slots.push_back(static_cast<int32_t>(11 - row));
  }
  args.batch.positions = make.ints(positions);
  args.batch.slots = make.ints(slots);
  args.batch.indptr = make.ints({0, static_cast<int32_t>(c.rows)});
  args.batch.page_table = reshaped(make.ints({2}), {1, 1});
  backend.compute_as({.rows = c.computed_as});
  if (c.observed) args.magnitudes = make.pattern(DType::u64, {3, c.n_kv_heads, kMagnitudeWords});
  if (way == FusedWay::fused) backend.project_append(in.x, in.entry, weights, args);
  if (way == FusedWay::composed) backend.Backend::project_append(in.x, in.entry, weights, args);
  results.insert(results.end(), {args.q, args.k, args.v});
  if (c.observed) results.push_back(*args.magnitudes);
  return outcome(backend, in, results);
}

using FusedOp = FusedOutcome (*)(Backend&, const FusedCase&, FusedWay);

// Checks that both ways give the same bytes, and whether the kernel ran.
inline void check_same(FusedOp op, Backend& backend, const FusedCase& c, bool takes_kernel) {
  CAPTURE(std::string(dtype_name(c.dtype)));
  CAPTURE(std::string(dtype_name(c.cache)));
  CAPTURE(c.rows);
  CAPTURE(c.dim);
  CAPTURE(c.bias);
  CAPTURE(c.n_heads);
  const FusedOutcome fused = op(backend, c, FusedWay::fused);
  CHECK(fused.took_kernel == takes_kernel);
  const bool same = fused == op(backend, c, FusedWay::composed);
  CHECK(same);
}

}  // namespace fp8kv::test
