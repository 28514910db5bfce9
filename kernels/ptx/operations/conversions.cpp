// cvt: from one type to another.  PTX ISA 9.7.9.21.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/ptx/operations/floats.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

// Rounds toward zero; too large numbers become the largest. NaN becomes 0 from f32 to 32 bits. From
// f64 or to 64 bits, it becomes the highest bit alone.
template <typename To, typename From>
To truncated(From x) {
  using Limits = std::numeric_limits<To>;
  constexpr bool kZero = sizeof(From) == 4 && sizeof(To) == 4;
  if (x != x) return kZero ? To{0} : static_cast<To>(uint64_t{1} << (sizeof(To) * 8 - 1));
  if (x <= static_cast<From>(Limits::min())) return Limits::min();
  if (x >= static_cast<From>(Limits::max())) return Limits::max();
  return static_cast<To>(x);
}

template <typename From>
void add_from_integer(Operations& o, const std::string& type) {
  add_map<float, From>(o, "cvt.rn.f32." + type, [](From x) { return static_cast<float>(x); });
  add_map<double, From>(o, "cvt.rn.f64." + type, [](From x) { return static_cast<double>(x); });
}

template <typename To>
void add_to_integer(Operations& o, const std::string& type) {
  const std::string name = "cvt.rzi." + type;
  add_map<To, float>(o, name + ".f32", [](float x) { return truncated<To>(x); });
  add_map<To, double>(o, name + ".f64", [](double x) { return truncated<To>(x); });
}

// Integers in registers that may be wider than their type: signed ones are sign-extended.
template <typename To, typename From, typename ToRegister, typename FromRegister>
void convert_wide(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  ToRegister* to = lanes_of<ToRegister>(warp, instruction.operand[0]);
  const FromRegister* from = lanes_of<FromRegister>(warp, instruction.operand[1]);
  each_lane(lanes, [&](int lane) {
    to[lane] = static_cast<ToRegister>(static_cast<To>(static_cast<From>(from[lane])));
  });
}

template <typename To, typename From, typename ToRegister>
Run wide_from(int from_bytes) {
  switch (from_bytes) {
    case 2:
      if constexpr (sizeof(From) <= 2) return convert_wide<To, From, ToRegister, uint16_t>;
      break;
    case 4:
      if constexpr (sizeof(From) <= 4) return convert_wide<To, From, ToRegister, uint32_t>;
      break;
    case 8:
      return convert_wide<To, From, ToRegister, uint64_t>;
    default:
      break;
  }
  return nullptr;
}

template <typename To, typename From>
Run wide(int to_bytes, int from_bytes) {
  switch (to_bytes) {
    case 2:
      if constexpr (sizeof(To) <= 2) return wide_from<To, From, uint16_t>(from_bytes);
      break;
    case 4:
      if constexpr (sizeof(To) <= 4) return wide_from<To, From, uint32_t>(from_bytes);
      break;
    case 8:
      return wide_from<To, From, uint64_t>(from_bytes);
    default:
      break;
  }
  return nullptr;
}

// Calls work(T{}) with the integer type of that name; null if there is none.
template <typename Work>
Run with_integer(const std::string& name, const Work& work) {
  if (name == "s8") return work(int8_t{});
  if (name == "u8") return work(uint8_t{});
  if (name == "s16") return work(int16_t{});
  if (name == "u16") return work(uint16_t{});
  if (name == "s32") return work(int32_t{});
  if (name == "u32") return work(uint32_t{});
  if (name == "s64") return work(int64_t{});
  if (name == "u64") return work(uint64_t{});
  return nullptr;
}

}  // namespace

Run find_wide_conversion(const std::string& opcode, int to_bytes, int from_bytes) {
  const size_t first = opcode.find('.'), second = opcode.find('.', first + 1);
  if (opcode.substr(0, first) != "cvt" || second == opcode.npos) return nullptr;
  const std::string to = opcode.substr(first + 1, second - first - 1);
  const std::string from = opcode.substr(second + 1);
  return with_integer(to, [&](auto t) {
    return with_integer(
        from, [&](auto f) { return wide<decltype(t), decltype(f)>(to_bytes, from_bytes); });
  });
}

void add_conversions(Operations& o) {
  add_from_integer<int16_t>(o, "s16");
  add_from_integer<uint16_t>(o, "u16");
  add_from_integer<int32_t>(o, "s32");
  add_from_integer<uint32_t>(o, "u32");
  add_from_integer<int64_t>(o, "s64");
  add_from_integer<uint64_t>(o, "u64");
  add_to_integer<int32_t>(o, "s32");
  add_to_integer<uint32_t>(o, "u32");
  add_to_integer<int64_t>(o, "s64");
  add_to_integer<uint64_t>(o, "u64");
  add_map<double, float>(o, "cvt.f64.f32", [](float x) { return double{x}; });
  add_map<float, double>(o, "cvt.rn.f32.f64", [](double x) { return static_cast<float>(x); });
  add_map<float, float>(o, "cvt.sat.f32.f32", [](float x) {
    return !(x > 0) ? 0.0f : x > 1 ? 1.0f : x;
  });
  add_map<float, uint16_t>(o, "cvt.f32.f16", [](uint16_t x) { return f16_number(x); });
  add_map<float, uint16_t>(o, "cvt.f32.bf16", [](uint16_t x) { return bf16_number(x); });
  add_map<uint16_t, float>(o, "cvt.rn.f16.f32", [](float x) { return f16_bits(x); });
  add_map<uint16_t, float>(o, "cvt.rn.bf16.f32", [](float x) { return bf16_bits(x); });
  // The first of two numbers goes to the upper half.
  add_map<uint32_t, float, float>(o, "cvt.rn.bf16x2.f32", [](float high, float low) {
    return uint32_t{bf16_bits(high)} << 16 | bf16_bits(low);
  });
  add_map<uint16_t, float, float>(o, "cvt.rn.satfinite.e4m3x2.f32", [](float high, float low) {
    return static_cast<uint16_t>(e4m3_bits(high) << 8 | e4m3_bits(low));
  });
  add_map<uint16_t, float, float>(o, "cvt.rn.satfinite.e5m2x2.f32", [](float high, float low) {
    return static_cast<uint16_t>(e5m2_bits(high) << 8 | e5m2_bits(low));
  });
  add_map<uint32_t, uint16_t>(o, "cvt.rn.f16x2.e4m3x2", [](uint16_t x) {
    return uint32_t{f16_bits(e4m3_number(static_cast<uint8_t>(x >> 8)))} << 16 |
           f16_bits(e4m3_number(static_cast<uint8_t>(x)));
  });
  add_map<uint32_t, uint16_t>(o, "cvt.rn.f16x2.e5m2x2", [](uint16_t x) {
    return uint32_t{f16_bits(e5m2_number(static_cast<uint8_t>(x >> 8)))} << 16 |
           f16_bits(e5m2_number(static_cast<uint8_t>(x)));
  });
}

}  // namespace fp8kv::ptx
