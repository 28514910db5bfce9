// Integers, bits and predicates.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

// A type so wide that no product or sum of 16 bits is promoted to int.
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Division by zero gives all ones on devices; PTX leaves it open.  PTX ISA 9.7.1.8, 9.7.1.9.
template <typename T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(Wide<T>{0} - static_cast<Wide<T>>(a));
  }
  return static_cast<T>(a / b);
}

template <typename T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

// PTX ISA 9.7.1.1 to 9.7.1.12.
template <typename T>
void add_arithmetic(Operations& o, const std::string& type) {
  using W = Wide<T>;
  add_map<T, T, T>(o, "add." + type, [](T a, T b) { return static_cast<T>(W(a) + W(b)); });
  add_map<T, T, T>(o, "sub." + type, [](T a, T b) { return static_cast<T>(W(a) - W(b)); });
  add_map<T, T, T>(o, "mul.lo." + type, [](T a, T b) { return static_cast<T>(W(a) * W(b)); });
  add_map<T, T, T, T>(o, "mad.lo." + type,
                      [](T a, T b, T c) { return static_cast<T>(W(a) * W(b) + W(c)); });
  add_map<T, T, T>(o, "div." + type, [](T a, T b) { return quotient(a, b); });
  add_map<T, T, T>(o, "rem." + type, [](T a, T b) { return remainder(a, b); });
  add_map<T, T, T>(o, "min." + type, [](T a, T b) { return a < b ? a : b; });
  add_map<T, T, T>(o, "max." + type, [](T a, T b) { return a > b ? a : b; });
  add_map<T, T>(o, "neg." + type, [](T a) { return static_cast<T>(W{0} - W(a)); });
}

// Shifts of a whole register or more give 0, or the sign.  PTX ISA 9.7.8.7, 9.7.8.8.
template <typename T>
void add_right_shift(Operations& o, const std::string& type) {
  add_map<T, T, uint32_t>(o, "shr." + type, [](T a, uint32_t by) {
    constexpr uint32_t kBits = sizeof(T) * 8;
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (by < kBits ? by : kBits - 1));
    return static_cast<T>(by < kBits ? a >> by : T{0});
  });
}

// PTX ISA 9.7.8.1 to 9.7.8.7.
template <typename T>
void add_bits(Operations& o, const std::string& type) {
  add_map<T, T, T>(o, "and." + type, [](T a, T b) { return static_cast<T>(a & b); });
  add_map<T, T, T>(o, "or." + type, [](T a, T b) { return static_cast<T>(a | b); });
  add_map<T, T, T>(o, "xor." + type, [](T a, T b) { return static_cast<T>(a ^ b); });
  add_map<T, T>(o, "not." + type, [](T a) { return static_cast<T>(~a); });
  add_map<T, T, uint32_t>(o, "shl." + type, [](T a, uint32_t by) {
    return static_cast<T>(by < sizeof(T) * 8 ? Wide<T>(a) << by : 0);
  });
  add_right_shift<T>(o, type);
}

// PTX ISA 9.7.1.3: the product in twice the bits.
template <typename To, typename T>
void add_wide_product(Operations& o, const std::string& type) {
  add_map<To, T, T>(o, "mul.wide." + type, [](T a, T b) { return static_cast<To>(To{a} * To{b}); });
}

// A predicate has a bit for each lane.
template <typename F, int kSources>
void map_predicates(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  uint32_t& to = *lanes_of<uint32_t>(warp, instruction.operand[0]);
  const uint32_t a = *lanes_of<uint32_t>(warp, instruction.operand[1]);
  const uint32_t b = *lanes_of<uint32_t>(warp, instruction.operand[kSources]);
  to = (to & ~lanes) | (F{}(a, b) & lanes);
}

template <typename F>
void add_predicates(Operations& o, const std::string& name, F) {
  o[name] = {map_predicates<F, 2>, "p:pp"};
}

// PTX ISA 9.7.8.6: each byte of the result is one of eight, or its sign.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t select) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t nibble = select >> 4 * i & 15;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (nibble & 7)) & 0xFF;
    if (nibble & 8) byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << 8 * i;
  }
  return result;
}

}  // namespace

void add_integer_operations(Operations& o) {
  add_arithmetic<int16_t>(o, "s16");
  add_arithmetic<uint16_t>(o, "u16");
  add_arithmetic<int32_t>(o, "s32");
  add_arithmetic<uint32_t>(o, "u32");
  add_arithmetic<int64_t>(o, "s64");
  add_arithmetic<uint64_t>(o, "u64");
  add_bits<uint16_t>(o, "b16");
  add_bits<uint32_t>(o, "b32");
  add_bits<uint64_t>(o, "b64");
  add_right_shift<int16_t>(o, "s16");
  add_right_shift<uint16_t>(o, "u16");
  add_right_shift<int32_t>(o, "s32");
  add_right_shift<uint32_t>(o, "u32");
  add_right_shift<int64_t>(o, "s64");
  add_right_shift<uint64_t>(o, "u64");
  add_wide_product<int32_t, int16_t>(o, "s16");
  add_wide_product<uint32_t, uint16_t>(o, "u16");
  add_wide_product<int64_t, int32_t>(o, "s32");
  add_wide_product<uint64_t, uint32_t>(o, "u32");
  add_map<int32_t, int32_t, int32_t>(o, "mul.hi.s32", [](int32_t a, int32_t b) {
    return static_cast<int32_t>(int64_t{a} * b >> 32);
  });
  add_map<uint32_t, uint32_t, uint32_t>(o, "mul.hi.u32", [](uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(uint64_t{a} * b >> 32);
  });
  add_map<uint32_t, uint32_t, uint32_t, uint32_t>(
      o, "prmt.b32", [](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, c); });
  add_predicates(o, "and.pred", [](uint32_t a, uint32_t b) { return a & b; });
  add_predicates(o, "or.pred", [](uint32_t a, uint32_t b) { return a | b; });
  add_predicates(o, "xor.pred", [](uint32_t a, uint32_t b) { return a ^ b; });
  const auto opposite = [](uint32_t a, uint32_t) { return ~a; };
  o["not.pred"] = {map_predicates<decltype(opposite), 1>, "p:p"};
}

}  // namespace fp8kv::ptx
