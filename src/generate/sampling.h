// How a sequence's tokens are drawn, and the same for the rows of a step on the backend. The
// drawing itself is an op, see Backend::sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace fp8kv {

struct SamplingOptions {
  float temperature = 0.0f;  // 0: the largest logit, the lowest id among equals
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;
  uint64_t seed = 0;  // with a token's position, all that chance depends on

  bool operator==(const SamplingOptions&) const = default;
};

// Throws for an option that is out of its range, named as in JSON records.
void check_sampling(const SamplingOptions& options);

// Seed of the `index`-th of several sequences that share one.
uint64_t sequence_seed(uint64_t seed, uint64_t index);

// Sampling options of up to `max_rows` rows.
class SamplingRows {
 public:
  SamplingRows(Backend& backend, int64_t max_rows);

  // Puts them on the backend, unless they are there already.
  void upload(std::span<const SamplingOptions> rows);
  // Of the rows uploaded last.   position [rows] i32
  Sampling at(const ConstTensorView& position) const;
  uint64_t bytes() const;

 private:
  Backend& backend_;
  std::vector<SamplingOptions> rows_;
  Tensor temperature_, top_k_, top_p_, seed_;  // [max_rows]
};

}  // namespace fp8kv
