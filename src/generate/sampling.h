// Sampling options of one sequence, and of all rows of a step on the backend. The op
// Backend::sample draws the tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace fp8kv {

struct SamplingOptions {
  float temperature = 0.0f;  // 0: takes the largest logit, the lowest id among equals
  int32_t top_k = 0;         // 0: no limit
  float top_p = 1.0f;
  uint64_t seed = 0;  // chance depends only on the seed and a token's position

  bool operator==(const SamplingOptions&) const = default;
};

// Throws for an option out of range. The error names the option by its key in JSON records.
void check_sampling(const SamplingOptions& options);

// The own seed of the `index`-th sequence, where several sequences share `seed`.
uint64_t sequence_seed(uint64_t seed, uint64_t index);

// The sampling options of up to `max_rows` rows, on the backend.
class SamplingRows {
 public:
  SamplingRows(Backend& backend, int64_t max_rows);

  // Copies `rows` to the backend, unless they equal the last ones.
  void upload(std::span<const SamplingOptions> rows);
  // Returns the uploaded options together with the rows' positions.   position [rows] i32
  Sampling at(const ConstTensorView& position) const;
  uint64_t bytes() const;

 private:
  Backend& backend_;
  std::vector<SamplingOptions> rows_;
  Tensor temperature_, top_k_, top_p_, seed_;  // [max_rows]
};

}  // namespace fp8kv
