// The reference's attention, in double precision: one head after another, token by token.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace fp8kv::test {

// The heads of a layer.
struct ReferenceHeads {
  const ModelConfig& config;
  int64_t window = 0;  // 0: none
  // Differential attention multiplies the second half of the heads by `lambda`. first_lambda is the
  // part of it that follows from the layer's number.
  double lambda = 0.0, first_lambda = 0.0;
};

// Attention of rows q over all rows before them and their own.   q [n][n_heads * head_dim]; k, v
// [n][n_kv_heads * head_dim]; the result [n][n_heads * head_dim]
std::vector<std::vector<double>> attend_all(const std::vector<std::vector<double>>& q,
                                            const std::vector<std::vector<double>>& k,
                                            const std::vector<std::vector<double>>& v,
                                            const ReferenceHeads& heads);

}  // namespace fp8kv::test
