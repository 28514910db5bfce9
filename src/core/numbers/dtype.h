// Element types, named as in safetensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/numbers/fp8.h"

namespace fp8kv {

enum class DType : uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

// "BF16", "F8_E4M3", ... as safetensors writes them.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// "bfloat16", "float8_e4m3fn", ... as torch writes them; the safetensors name where torch has none.
std::string_view torch_name(DType dtype);
std::optional<DType> dtype_from_torch_name(std::string_view name);

int dtype_bits(DType dtype);
// REQUIRES a type of whole bytes.
size_t dtype_bytes(DType dtype);

// Whether weights and activations can have this type: f32, f16 or bf16.
bool is_compute_dtype(DType dtype);
// The FP8 format of a one-byte float; nullopt for other types.
std::optional<Fp8Format> fp8_format(DType dtype);
DType dtype_of(Fp8Format format);
// Whether the format is E4M3FN or E4M3FNUZ, which take scales. E5M2 runs without scales.
bool is_e4m3(Fp8Format format);
bool is_e4m3(DType dtype);

}  // namespace fp8kv
