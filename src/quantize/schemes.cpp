#include "quantize/schemes.h"

#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

// Source: compressed-tensors 0.20, quantization/quant_scheme.py.
constexpr Fp8Scheme kSchemes[] = {
    {"fp8-dynamic", "a scale for each row, inputs by token as they come", 1, 0, "channel", "token"},
    {"fp8-block", "a scale for each 128 x 128, inputs by 128 of a token as they come", 128, 128,
     "block", "group"},
    {"fp8-static", "a scale for each matrix, and one for its inputs as they were in --data", 0, 0,
     "tensor", "tensor", true},
};

}  // namespace

std::span<const Fp8Scheme> fp8_schemes() {
  return kSchemes;
}

const Fp8Scheme& fp8_scheme_at(const std::string& name) {
  std::vector<std::string> names;
  for (const Fp8Scheme& scheme : kSchemes) {
    if (scheme.name == name) return scheme;
    names.push_back(scheme.name);
  }
  throw Error(cat("no such scheme: ", quote(name)), cat("use one of ", join(names)),
              ErrorKind::usage);
}

}  // namespace fp8kv
