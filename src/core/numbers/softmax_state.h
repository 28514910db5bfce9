// Softmax over parts of a context, and how two parts merge. All backends share this arithmetic when
// they split a long context.
#pragma once

#include <cmath>

#include "core/numbers/hd.h"

namespace fp8kv {

// A part's largest score and its sum of exp(score - max). The part's output is its weighted sum of
// values, not yet divided by `sum`. A part without tokens has max = -infinity and sum = 0.
struct SoftmaxState {
  float max;
  float sum;
};

// The result of a merge: the new state, and the factors for the two outputs before they are added.
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
