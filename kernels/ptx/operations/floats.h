// Numbers of 8 and 16 bits, and sums rounded in other directions than to the nearest.
#pragma once

#include <cstdint>

namespace fp8kv::ptx {

// PTX ISA 9.7.9.21: NaN becomes the canonical NaN, ties go to even. f16 and bf16 overflow to
// infinity; FP8 overflows to the largest number (.satfinite).
uint16_t f16_bits(float x);
uint16_t bf16_bits(float x);
uint8_t e4m3_bits(float x);
uint8_t e5m2_bits(float x);

float f16_number(uint16_t bits);
float bf16_number(uint16_t bits);
float e4m3_number(uint8_t bits);
float e5m2_number(uint8_t bits);

float sum_toward_zero(float a, float b);
// a * b + c, rounded once, down.
float fused_down(float a, float b, float c);

}  // namespace fp8kv::ptx
