// A second forward pass, in double precision and plain loops, written from the papers and sharing
// nothing with the product but the file reader: the oracle for logits and for what K and V reach.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"

namespace fp8kv::test {

// What a cache makes of a value of K or V: identity unless a test says otherwise.
using CacheRounding =
    std::function<double(double value, int64_t layer, int64_t kv_head, bool is_key)>;

// What a cache does to one layer's values, the layer's input being exact: sums of squares.
struct ReferenceErrors {
  double k_error = 0, k = 0;
  double v_error = 0, v = 0;
  double attention_error = 0, attention = 0;
};

struct ReferenceRun {
  std::vector<std::vector<double>> logits;          // [position][vocab_size]
  std::vector<std::vector<double>> k_amax, v_amax;  // [layer][kv_head], as they enter the cache
  std::vector<std::vector<double>> q_amax;          // [layer][kv_head]
  std::vector<ReferenceErrors> errors;              // [layer]; see `measured`
};

// With `measured`, errors are what that rounding does to each layer; the pass goes on without it.
ReferenceRun reference_forward(const Checkpoint& checkpoint, const ModelConfig& config,
                               const std::vector<int32_t>& ids,
                               const CacheRounding& rounding = nullptr,
                               const CacheRounding& measured = nullptr);

// The `count` ids of the largest logits, one after another.
std::vector<int32_t> reference_greedy(const Checkpoint& checkpoint, const ModelConfig& config,
                                      std::vector<int32_t> prompt, int count,
                                      const CacheRounding& rounding = nullptr);

}  // namespace fp8kv::test
