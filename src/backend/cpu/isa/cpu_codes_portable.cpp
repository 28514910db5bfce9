// Codes of quantised weights in plain C++.
#include <cstddef>

#include "backend/cpu/isa/common/cpu_code_kernels.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

uint16_t rounded(float value, bool bf16) {
  return bf16 ? bf16_from_float(value) : f16_from_float(value);
}

void fill(const float* values, float zero, float scale, bool bf16, CodeTable& table) {
  for (size_t code = 0; code < table.low.size(); ++code) {
    const uint16_t worth = rounded((values[code] - zero) * scale, bf16);
    table.low[code] = static_cast<uint8_t>(worth);
    table.high[code] = static_cast<uint8_t>(worth >> 8);
  }
}

void nibbles(const uint8_t* codes, int64_t count, const float* values, float zero, float scale,
             bool bf16, uint16_t* to) {
  std::array<uint16_t, 16> table;
  for (size_t code = 0; code < table.size(); ++code) {
    table[code] = rounded((values[code] - zero) * scale, bf16);
  }
  for (int64_t i = 0; i < count; ++i) to[i] = table[codes[i / 2] >> (i % 2 * 4) & 15];
}

}  // namespace

const CodeKernels kPortableCodes = {.fill = fill, .bytes = look_up_each, .nibbles = nibbles};

}  // namespace fp8kv
