// Softmax over parts of a context, and how two parts become one: the arithmetic that every backend
// shares when it splits a long context.
#pragma once

#include <cmath>

#include "core/hd.h"

namespace fp8kv {

// A part's largest score and its sum of exp(score - max). The part's output is its weighted sum of
// values, not yet divided by `sum`. A part without tokens has max = -infinity and sum = 0.
struct SoftmaxState {
  float max;
  float sum;
};

// By what two outputs have to be multiplied before they are added, and the state of the sum.
struct SoftmaxMerge {
  SoftmaxState state;
  float factor_a;
  float factor_b;
};

// Exact where one part is empty: its factor is 0, the other's 1.
FP8KV_HD SoftmaxMerge merge(const SoftmaxState& a, const SoftmaxState& b) {
  const float max = a.max > b.max ? a.max : b.max;
  const float factor_a = a.sum == 0.0f ? 0.0f : expf(a.max - max);
  const float factor_b = b.sum == 0.0f ? 0.0f : expf(b.max - max);
  return {{max, a.sum * factor_a + b.sum * factor_b}, factor_a, factor_b};
}

}  // namespace fp8kv
