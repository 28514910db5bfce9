// A second forward pass in double precision and plain loops, written from the papers. It shares
// only the file reader with the product. It is the oracle for logits and for the amax of K and V.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"

namespace fp8kv::test {

// Turns a value of K or V into what a cache returns. Without one, values stay unchanged.
using CacheRounding =
    std::function<double(double value, int64_t layer, int64_t kv_head, bool is_key)>;

// A cache's errors in one layer with exact input, as sums of squares.
struct ReferenceErrors {
  double k_error = 0, k = 0;
  double v_error = 0, v = 0;
  double attention_error = 0, attention = 0;
};

struct ReferenceRun {
  std::vector<std::vector<double>> logits;          // [position][vocab_size]
  std::vector<std::vector<double>> k_amax, v_amax;  // [layer][kv_head], on entry to the cache
  std::vector<std::vector<double>> q_amax;          // [layer][kv_head]
  std::vector<ReferenceErrors> errors;              // [layer]; see `measured`
};

// `measured` is a rounding whose error is measured in each layer; the pass itself does not use it.
ReferenceRun reference_forward(const Checkpoint& checkpoint, const ModelConfig& config,
                               const std::vector<int32_t>& ids,
                               const CacheRounding& rounding = nullptr,
                               const CacheRounding& measured = nullptr);

// `count` ids by greedy decoding.
std::vector<int32_t> reference_greedy(const Checkpoint& checkpoint, const ModelConfig& config,
                                      std::vector<int32_t> prompt, int count,
                                      const CacheRounding& rounding = nullptr);

}  // namespace fp8kv::test
