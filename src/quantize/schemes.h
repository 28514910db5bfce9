// A table of the schemes for FP8 weights. A scheme says which elements of a matrix share a scale,
// and how a runtime quantises the matrix's inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fp8kv {

struct Fp8Scheme {
  const char* name;     // "fp8-dynamic"
  const char* summary;  // for people
  // The block of elements that share a scale; 0: all rows, or all columns.
  int64_t block_rows;
  int64_t block_columns;
  // The strategies for weights and inputs, as compressed-tensors names them.
  const char* weights;
  const char* inputs;
  bool static_inputs = false;  // the file holds a scale for the inputs of each matrix
};

std::span<const Fp8Scheme> fp8_schemes();
// Throws for an unknown name, with the list of all names.
const Fp8Scheme& fp8_scheme_at(const std::string& name);

}  // namespace fp8kv
