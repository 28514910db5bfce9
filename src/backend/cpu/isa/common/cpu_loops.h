// Loops that compilers vectorise by themselves, written once. Each instruction set inlines them
// into functions compiled for it. Sums have lanes that are added in a fixed order, so results do
// not depend on the width of the vectors.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "backend/cpu/isa/common/cpu_elements.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "core/numbers/histogram.h"

namespace fp8kv {

// The function that `make` gives for each element type: make.template operator()<F32Element>() and
// so on.
template <typename Function, typename Make>
constexpr PerType<Function> per_type(const Make& make) {
  return {.f32 = make.template operator()<F32Element>(),
          .f16 = make.template operator()<F16Element>(),
          .bf16 = make.template operator()<Bf16Element>(),
          .e4m3fn = make.template operator()<Fp8Element<Fp8Format::e4m3fn>>(),
          .e4m3fnuz = make.template operator()<Fp8Element<Fp8Format::e4m3fnuz>>(),
          .e5m2 = make.template operator()<Fp8Element<Fp8Format::e5m2>>(),
          .e5m2fnuz = make.template operator()<Fp8Element<Fp8Format::e5m2fnuz>>()};
}

// One function for each activation: make.template operator()<Activation::silu>() and so on, in the
// order of Activation.
template <typename Make>
constexpr std::array<CpuKernels::Activate, kActivations> per_activation(const Make& make) {
  return [&]<int... kAll>(std::integer_sequence<int, kAll...>) {
    return std::array<CpuKernels::Activate, kActivations>{
        make.template operator()<static_cast<Activation>(kAll)>()...};
  }
  (std::make_integer_sequence<int, kActivations>());
}

}  // namespace fp8kv

namespace fp8kv::loops {

inline constexpr int kLanes = 16;

// exp(x), within 2 units in the last place (tests/backend/test_cpu_loops.cpp); 0 below -104,
// infinity above 88.73; NaN for NaN.
[[gnu::always_inline]] inline float exp(float x) {
  x = x < -120.0f ? -120.0f : x;
  x = x > 90.0f ? 90.0f : x;
  // n = round(x / ln 2): adding 1.5 * 2^23 leaves it in the low bits of the sum.
  const float shifted = x * 0x1.715476p+0f + 0x1.8p23f;
  const float n = shifted - 0x1.8p23f;
  // ln 2 in two parts, the first short enough for n times it to be exact.
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  // Taylor series to r^7: with |r| <= ln 2 / 2, the omitted terms are below 2^-27.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * (r * r) + r;
  p = p + 1.0f;
  // 2^n in two factors: n is from -173 to 130.
  const int32_t whole = static_cast<int32_t>(float_bits(shifted)) - 0x4B400000;
  const int32_t half = whole >> 1;
  const float low = float_from_bits(static_cast<uint32_t>(half + 127) << 23);
  const float high = float_from_bits(static_cast<uint32_t>(whole - half + 127) << 23);
  return p * low * high;
}

[[gnu::always_inline]] inline float sum_of_lanes(const float* lanes) {
  float sums[kLanes / 2];
  for (int j = 0; j < 8; ++j) sums[j] = lanes[j] + lanes[j + 8];
  for (int j = 0; j < 4; ++j) sums[j] = sums[j] + sums[j + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// See CpuKernels::Softmax. `scores` has room for `count` rounded up to kLanes.
[[gnu::always_inline]] inline float softmax(float* scores, int begin, int end, int count,
                                            float scale, SoftmaxState& state) {
  constexpr float kNever = -__builtin_inff();
  const int padded = (count + kLanes - 1) / kLanes * kLanes;
  for (int t = 0; t < padded; ++t) scores[t] *= scale;
  for (int t = 0; t < begin; ++t) scores[t] = kNever;
  for (int t = end; t < padded; ++t) scores[t] = kNever;

  float lanes[kLanes];
  for (int j = 0; j < kLanes; ++j) lanes[j] = state.max;
  for (int t = 0; t < padded; t += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      lanes[j] = scores[t + j] > lanes[j] ? scores[t + j] : lanes[j];
    }
  }
  float max = lanes[0];
  for (int j = 1; j < kLanes; ++j) max = lanes[j] > max ? lanes[j] : max;

  for (int j = 0; j < kLanes; ++j) lanes[j] = 0.0f;
  for (int t = 0; t < padded; t += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float p = exp(scores[t + j] - max);
      scores[t + j] = p;
      lanes[j] += p;
    }
  }
  const float correction = exp(state.max - max);
  state.max = max;
  state.sum = state.sum * correction + sum_of_lanes(lanes);
  return correction;
}

// Within 4 units in the last place (tests/backend/test_cpu_loops.cpp).
[[gnu::always_inline]] inline float tanh(float x) {
  const float magnitude = std::fabs(x);
  const float e = exp(-2.0f * magnitude);
  const float large = (1.0f - e) / (1.0f + e);
  // Near 0 the formula above would cancel, so Taylor's series; its omitted terms are below 2^-26 of
  // x.
  const float square = x * x;
  float p = -1382.0f / 155925;
  p = p * square + 62.0f / 2835;
  p = p * square - 17.0f / 315;
  p = p * square + 2.0f / 15;
  p = p * square - 1.0f / 3;
  const float small = magnitude + magnitude * square * p;
  return std::copysign(magnitude < 0.25f ? small : large, x);
}

template <Activation A>
[[gnu::always_inline]] inline float activated(float x) {
  if constexpr (A == Activation::silu) {
    return x / (1.0f + exp(-x));
  } else if constexpr (A == Activation::gelu_tanh) {
    // x * (1 + tanh(u)) / 2, which is x times the logistic function of 2 u.
    const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x / (1.0f + exp(-2.0f * u));
  } else if constexpr (A == Activation::gelu_erf) {
    return 0.5f * x * (1.0f + std::erf(x * 0.7071067812f));
  } else if constexpr (A == Activation::sigmoid) {
    return 1.0f / (1.0f + exp(-x));
  } else if constexpr (A == Activation::softplus) {
    return x > 20.0f ? x : std::log1p(exp(x));
  } else {
    static_assert(A == Activation::relu || A == Activation::relu_squared);
    const float positive = x < 0.0f ? 0.0f : x;  // a NaN stays
    return A == Activation::relu ? positive : positive * positive;
  }
}

template <Activation A>
[[gnu::always_inline]] inline void activate(float* x, const float* up, int64_t count) {
  if (up == nullptr) {
    for (int64_t i = 0; i < count; ++i) x[i] = activated<A>(x[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) x[i] = activated<A>(x[i]) * up[i];
  }
}

[[gnu::always_inline]] inline void clamped_swiglu(float* gate, const float* up, int64_t count,
                                                  const ClampedSwiglu& how) {
  const auto at_most = [&](float x) { return x > how.limit ? how.limit : x; };
  const auto within = [&](float x) { return at_most(x < -how.limit ? -how.limit : x); };
  if (how.form == SwigluForm::situ) {
    for (int64_t i = 0; i < count; ++i) {
      const float g =
          how.alpha * tanh(gate[i] / how.alpha) * activated<Activation::sigmoid>(gate[i]);
      gate[i] = g * (how.limit * tanh(up[i] / how.limit));
    }
    return;
  }
  if (how.form == SwigluForm::after) {
    for (int64_t i = 0; i < count; ++i) {
      gate[i] = at_most(activated<Activation::silu>(gate[i])) * within(up[i]);
    }
    return;
  }
  if (how.form == SwigluForm::silu) {
    for (int64_t i = 0; i < count; ++i) {
      gate[i] = activated<Activation::silu>(at_most(gate[i])) * within(up[i]);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float g = at_most(gate[i]);
    gate[i] = g / (1.0f + exp(-how.alpha * g)) * (within(up[i]) + 1.0f);
  }
}

[[gnu::always_inline]] inline void cap(float* x, int64_t count, float multiplier, float most) {
  for (int64_t i = 0; i < count; ++i) x[i] = most * tanh(x[i] * multiplier / most);
}

[[gnu::always_inline]] inline void rotate(float* x, const float* rope, int half) {
  for (int i = 0; i < half; ++i) {
    const float first = x[i];
    const float second = x[i + half];
    const float cosine = rope[i];
    const float sine = rope[i + half];
    x[i] = first * cosine - second * sine;
    x[i + half] = second * cosine + first * sine;
  }
}

[[gnu::always_inline]] inline void round_f16(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = f16_to_float(f16_from_float(x[i]));
}

[[gnu::always_inline]] inline void round_bf16(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = bf16_to_float(bf16_from_float(x[i]));
}

// In lanes, so that the compiler sees independent maxima; as signed numbers, since no magnitude has
// the sign bit.
[[gnu::always_inline]] inline uint32_t largest_bits(const float* x, int64_t count, uint32_t least) {
  constexpr int kWide = 4 * kLanes;
  int32_t lanes[kWide];
  for (int j = 0; j < kWide; ++j) lanes[j] = static_cast<int32_t>(least);
  const int64_t whole = count / kWide * kWide;
  for (int64_t i = 0; i < whole; i += kWide) {
    for (int j = 0; j < kWide; ++j) {
      const auto bits = static_cast<int32_t>(float_bits(x[i + j]) & 0x7FFFFFFFu);
      lanes[j] = bits > lanes[j] ? bits : lanes[j];
    }
  }
  int32_t most = lanes[0];
  for (int j = 1; j < kWide; ++j) most = lanes[j] > most ? lanes[j] : most;
  for (int64_t i = whole; i < count; ++i) {
    const auto bits = static_cast<int32_t>(float_bits(x[i]) & 0x7FFFFFFFu);
    most = bits > most ? bits : most;
  }
  return static_cast<uint32_t>(most);
}

// In few lanes, since `count` is small.
[[gnu::always_inline]] inline uint32_t magnitude_bins(const float* x, int64_t count,
                                                      uint32_t* bins) {
  int32_t lanes[kLanes] = {};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const uint32_t bits = float_bits(x[i + j]) & 0x7FFFFFFFu;
      bins[i + j] = static_cast<uint32_t>(magnitude_bin(bits));
      lanes[j] = static_cast<int32_t>(bits) > lanes[j] ? static_cast<int32_t>(bits) : lanes[j];
    }
  }
  int32_t most = 0;
  for (const int32_t lane : lanes) most = lane > most ? lane : most;
  for (int64_t i = whole; i < count; ++i) {
    const uint32_t bits = float_bits(x[i]) & 0x7FFFFFFFu;
    bins[i] = static_cast<uint32_t>(magnitude_bin(bits));
    most = static_cast<int32_t>(bits) > most ? static_cast<int32_t>(bits) : most;
  }
  return static_cast<uint32_t>(most);
}

[[gnu::always_inline]] inline void divide(float* x, int64_t count, float by) {
  for (int64_t i = 0; i < count; ++i) x[i] /= by;
}

// Columns of a block of a state that are worked on together.
inline constexpr int kStatePart = 2 * kLanes;

struct StateSums {
  float of_k[kStatePart] = {};
  float of_q[kStatePart] = {};
};

template <bool kWrites, bool kReads>
[[gnu::always_inline]] inline void state_row(float* s, int64_t i, const StateWrite& write,
                                             const float (&delta)[kStatePart],
                                             const StateRead& read, StateSums& sums) {
  if constexpr (kWrites) {
    const float decay = write.decay[i * write.decay_step];
    for (int j = 0; j < kStatePart; ++j) s[j] = s[j] * decay + write.k[i] * delta[j];
  }
  if constexpr (kReads) {
    for (int j = 0; j < kStatePart; ++j) sums.of_k[j] += s[j] * read.k[i];
    for (int j = 0; j < kStatePart; ++j) sums.of_q[j] += s[j] * read.q[i];
  }
}

// Columns [column, column + kStatePart) of CpuKernels::StatePass. Even and odd rows have separate
// sums, so that fewer additions wait for the one before.
template <bool kWrites, bool kReads>
[[gnu::always_inline]] inline void state_columns(float* state, int64_t k_dim, int64_t column,
                                                 const StateWrite& write, const StateRead& read) {
  StateSums even, odd;
  float delta[kStatePart] = {};
  if constexpr (kWrites) {
    for (int j = 0; j < kStatePart; ++j) delta[j] = write.delta[column + j];
  }
  float* s = state + column;
  int64_t i = 0;
  for (; i + 1 < k_dim; i += 2) {
    state_row<kWrites, kReads>(s + i * kStateColumns, i, write, delta, read, even);
    state_row<kWrites, kReads>(s + (i + 1) * kStateColumns, i + 1, write, delta, read, odd);
  }
  if (i < k_dim) state_row<kWrites, kReads>(s + i * kStateColumns, i, write, delta, read, even);
  if constexpr (!kReads) return;
  for (int j = 0; j < kStatePart; ++j) read.of_k[column + j] = even.of_k[j] + odd.of_k[j];
  for (int j = 0; j < kStatePart; ++j) read.of_q[column + j] = even.of_q[j] + odd.of_q[j];
}

[[gnu::always_inline]] inline void state_pass(float* state, int64_t k_dim, const StateWrite* write,
                                              const StateRead* read) {
  for (int64_t column = 0; column < kStateColumns; column += kStatePart) {
    if (write != nullptr && read != nullptr) {
      state_columns<true, true>(state, k_dim, column, *write, *read);
    } else if (write != nullptr) {
      state_columns<true, false>(state, k_dim, column, *write, {});
    } else if (read != nullptr) {
      state_columns<false, true>(state, k_dim, column, {}, *read);
    }
  }
}

template <typename Element>
[[gnu::always_inline]] inline void to_float(const std::byte* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = Element::load(from + i * Element::kBytes);
}

template <typename Element>
[[gnu::always_inline]] inline void copy_row(const std::byte* from, int count, int width,
                                            float* to) {
  for (int j = 0; j < count; ++j) to[j] = Element::load(from + j * Element::kBytes);
  for (int j = count; j < width; ++j) to[j] = 0.0f;
}

template <typename Element>
[[gnu::always_inline]] inline void store(const float* from, int64_t count, float scale,
                                         std::byte* to) {
  for (int64_t i = 0; i < count; ++i) Element::store(from[i], scale, to + i * Element::kBytes);
}

}  // namespace fp8kv::loops
