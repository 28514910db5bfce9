// The schemes in which FP8 weights are written, as one table. A scheme says which elements of a
// matrix share a scale, and how a runtime is to quantise what the matrix multiplies.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fp8kv {

struct Fp8Scheme {
  const char* name;     // "fp8-dynamic"
  const char* summary;  // for people
  // Elements that share a scale; 0: all rows, or all columns.
  int64_t block_rows;
  int64_t block_columns;
  // As compressed-tensors names them, of weights and of what they multiply.
  const char* weights;
  const char* inputs;
  bool static_inputs = false;  // a scale for what a matrix multiplies is in the file
};

std::span<const Fp8Scheme> fp8_schemes();
// Throws, naming all that there are.
const Fp8Scheme& fp8_scheme_at(const std::string& name);

}  // namespace fp8kv
