#include "core/numbers/dtype.h"

#include <array>

#include "base/error.h"

namespace fp8kv {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::string_view torch;
  int bits;
};

// Rows stand in the order of the enumerators.
constexpr std::array<Row, static_cast<size_t>(DType::u64) + 1> kRows = {{
    {DType::boolean, "BOOL", "bool", 8},
    {DType::f4, "F4", "", 4},
    {DType::f6_e2m3, "F6_E2M3", "", 6},
    {DType::f6_e3m2, "F6_E3M2", "", 6},
    {DType::u8, "U8", "uint8", 8},
    {DType::i8, "I8", "int8", 8},
    {DType::f8_e5m2, "F8_E5M2", "float8_e5m2", 8},
    {DType::f8_e4m3, "F8_E4M3", "float8_e4m3fn", 8},
    {DType::f8_e8m0, "F8_E8M0", "float8_e8m0fnu", 8},
    {DType::f8_e4m3fnuz, "F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
    {DType::f8_e5m2fnuz, "F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
    {DType::i16, "I16", "int16", 16},
    {DType::u16, "U16", "uint16", 16},
    {DType::f16, "F16", "float16", 16},
    {DType::bf16, "BF16", "bfloat16", 16},
    {DType::i32, "I32", "int32", 32},
    {DType::u32, "U32", "uint32", 32},
    {DType::f32, "F32", "float32", 32},
    {DType::c64, "C64", "complex64", 64},
    {DType::f64, "F64", "float64", 64},
    {DType::i64, "I64", "int64", 64},
    {DType::u64, "U64", "uint64", 64},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].dtype != static_cast<DType>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "every DType has a row, in the order of the enumerators");

const Row& row(DType dtype) {
  return kRows[static_cast<size_t>(dtype)];
}

}  // namespace

std::string_view dtype_name(DType dtype) {
  return row(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

std::string_view torch_name(DType dtype) {
  return row(dtype).torch.empty() ? row(dtype).name : row(dtype).torch;
}

std::optional<DType> dtype_from_torch_name(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (!candidate.torch.empty() && candidate.torch == name) return candidate.dtype;
  }
  return std::nullopt;
}

int dtype_bits(DType dtype) {
  return row(dtype).bits;
}

size_t dtype_bytes(DType dtype) {
  FP8KV_ASSERT(dtype_bits(dtype) % 8 == 0);
  return static_cast<size_t>(dtype_bits(dtype)) / 8;
}

bool is_compute_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

std::optional<Fp8Format> fp8_format(DType dtype) {
  switch (dtype) {
    case DType::f8_e4m3:
      return Fp8Format::e4m3fn;
    case DType::f8_e4m3fnuz:
      return Fp8Format::e4m3fnuz;
    case DType::f8_e5m2:
      return Fp8Format::e5m2;
    case DType::f8_e5m2fnuz:
      return Fp8Format::e5m2fnuz;
    default:
      return std::nullopt;
  }
}

DType dtype_of(Fp8Format format) {
  switch (format) {
    case Fp8Format::e4m3fn:
      return DType::f8_e4m3;
    case Fp8Format::e4m3fnuz:
      return DType::f8_e4m3fnuz;
    case Fp8Format::e5m2:
      return DType::f8_e5m2;
    case Fp8Format::e5m2fnuz:
      return DType::f8_e5m2fnuz;
  }
  return DType::f8_e4m3;
}

bool is_e4m3(Fp8Format format) {
  return fp8_spec(format).mantissa_bits == 3;
}

bool is_e4m3(DType dtype) {
  const std::optional<Fp8Format> format = fp8_format(dtype);
  return format && is_e4m3(*format);
}

}  // namespace fp8kv
