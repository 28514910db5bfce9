#pragma once

#include <type_traits>

#include "core/model/block.h"
#include "kernels/blocks/elements.cuh"

namespace fp8kv::FP8KV_GPU {

template <Activation A>
__device__ inline float activated(float x) {
  if constexpr (A == Activation::silu) {
    return x / (1.0f + exp_exact(-x));
  } else if constexpr (A == Activation::gelu_tanh) {
    // x * (1 + tanh(u)) / 2, which is x times the logistic function of 2 u.
    const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x / (1.0f + exp_exact(-2.0f * u));
  } else if constexpr (A == Activation::gelu_erf) {
    return 0.5f * x * (1.0f + erf_exact(x * 0.7071067812f));
  } else if constexpr (A == Activation::sigmoid) {
    return 1.0f / (1.0f + exp_exact(-x));
  } else if constexpr (A == Activation::softplus) {
    return x > 20.0f ? x : log1p_exact(exp_exact(x));
  } else {
    static_assert(A == Activation::relu || A == Activation::relu_squared);
    const float positive = x < 0.0f ? 0.0f : x;  // a NaN stays
    return A == Activation::relu ? positive : positive * positive;
  }
}

// See ClampedSwiglu.
__device__ inline float clamped(const ClampedSwiglu& how, float gate, float up) {
  if (how.form == SwigluForm::situ) {
    const float g = how.alpha * tanh_exact(gate / how.alpha) * activated<Activation::sigmoid>(gate);
    return g * (how.limit * tanh_exact(up / how.limit));
  }
  const float above = up < -how.limit ? -how.limit : up;
  const float u = above > how.limit ? how.limit : above;
  if (how.form == SwigluForm::after) {
    const float g = activated<Activation::silu>(gate);
    return (g > how.limit ? how.limit : g) * u;
  }
  const float g = gate > how.limit ? how.limit : gate;
  if (how.form == SwigluForm::silu) return activated<Activation::silu>(g) * u;
  return g / (1.0f + exp_exact(-how.alpha * g)) * (u + 1.0f);
}

// activation(gate) * up.
template <Activation A, typename T>
__device__ inline T gated(T gate, T up) {
  return T::of(activated<A>(gate.value()) * up.value());
}

template <Activation A>
using ActivationTag = std::integral_constant<Activation, A>;

// Calls work(ActivationTag<A>()) for the activation.
template <typename Work>
void with_activation(Activation activation, const Work& work) {
  switch (activation) {
    case Activation::silu:
      return work(ActivationTag<Activation::silu>());
    case Activation::gelu_tanh:
      return work(ActivationTag<Activation::gelu_tanh>());
    case Activation::gelu_erf:
      return work(ActivationTag<Activation::gelu_erf>());
    case Activation::relu:
      return work(ActivationTag<Activation::relu>());
    case Activation::relu_squared:
      return work(ActivationTag<Activation::relu_squared>());
    case Activation::sigmoid:
      return work(ActivationTag<Activation::sigmoid>());
    case Activation::softplus:
      return work(ActivationTag<Activation::softplus>());
  }
}

}  // namespace fp8kv::FP8KV_GPU
