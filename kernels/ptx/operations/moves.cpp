// Copies, choices and comparisons.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

// PTX ISA 9.7.9.1, 9.7.7.3.
template <typename T>
void add_type(Operations& o, const std::string& type) {
  add_map<T, T>(o, "mov." + type, [](T a) { return a; });
  o["mov." + type].kind = Kind::moves;
  o["selp." + type] = {[](Warp& warp, const Instruction& in, uint32_t lanes) {
                         T* to = lanes_of<T>(warp, in.operand[0]);
                         const T* a = lanes_of<T>(warp, in.operand[1]);
                         const T* b = lanes_of<T>(warp, in.operand[2]);
                         const uint32_t first = *lanes_of<uint32_t>(warp, in.operand[3]);
                         each_lane(lanes, [&](int l) { to[l] = first >> l & 1 ? a[l] : b[l]; });
                       },
                       std::string{operand_of<T>(), ':', operand_of<T>(), operand_of<T>(), 'p'},
                       Kind::chooses};
}

template <typename F, typename T>
void compare(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  const T* a = lanes_of<T>(warp, instruction.operand[1]);
  const T* b = lanes_of<T>(warp, instruction.operand[2]);
  uint32_t holds = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    holds |= static_cast<uint32_t>(F{}(a[lane], b[lane])) << lane;
  }
  uint32_t& to = *lanes_of<uint32_t>(warp, instruction.operand[0]);
  to = (to & ~lanes) | (holds & lanes);
}

template <typename T, typename F>
void add_comparison(Operations& o, const std::string& name, F) {
  o["setp." + name] = {compare<F, T>, std::string{'p', ':', operand_of<T>(), operand_of<T>()}};
}

// PTX ISA 9.7.7.2. A comparison with a NaN does not hold.
template <typename T>
void add_comparisons(Operations& o, const std::string& type) {
  add_comparison<T>(o, "eq." + type, [](T a, T b) { return a == b; });
  add_comparison<T>(o, "ne." + type, [](T a, T b) { return a < b || a > b; });
  add_comparison<T>(o, "lt." + type, [](T a, T b) { return a < b; });
  add_comparison<T>(o, "le." + type, [](T a, T b) { return a <= b; });
  add_comparison<T>(o, "gt." + type, [](T a, T b) { return a > b; });
  add_comparison<T>(o, "ge." + type, [](T a, T b) { return a >= b; });
}

// These hold if an operand is NaN.
template <typename T>
void add_unordered(Operations& o, const std::string& type) {
  add_comparison<T>(o, "equ." + type, [](T a, T b) { return !(a < b || a > b); });
  add_comparison<T>(o, "neu." + type, [](T a, T b) { return !(a == b); });
  add_comparison<T>(o, "ltu." + type, [](T a, T b) { return !(a >= b); });
  add_comparison<T>(o, "leu." + type, [](T a, T b) { return !(a > b); });
  add_comparison<T>(o, "gtu." + type, [](T a, T b) { return !(a <= b); });
  add_comparison<T>(o, "geu." + type, [](T a, T b) { return !(a < b); });
  add_comparison<T>(o, "num." + type, [](T a, T b) { return a == a && b == b; });
  add_comparison<T>(o, "nan." + type, [](T a, T b) { return a != a || b != b; });
}

// A register of two halves.  PTX ISA 9.7.9.2.
template <typename Half, typename Whole>
void add_halves(Operations& o, const std::string& type) {
  constexpr int kBits = sizeof(Half) * 8;
  add_map<Whole, Half, Half>(o, "pack." + type, [](Half low, Half high) {
    return static_cast<Whole>(Whole{low} | Whole{high} << kBits);
  });
  o["pack." + type].kind = Kind::packs;
  o["unpack." + type] = {
      [](Warp& warp, const Instruction& in, uint32_t lanes) {
        Half* low = lanes_of<Half>(warp, in.operand[0]);
        Half* high = lanes_of<Half>(warp, in.operand[1]);
        const Whole* from = lanes_of<Whole>(warp, in.operand[2]);
        each_lane(lanes, [&](int l) {
          const Whole value = from[l];
          low[l] = static_cast<Half>(value);
          high[l] = static_cast<Half>(value >> kBits);
        });
      },
      std::string{operand_of<Half>(), operand_of<Half>(), ':', operand_of<Whole>()}, Kind::unpacks};
}

void copy_predicate(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  uint32_t& to = *lanes_of<uint32_t>(warp, instruction.operand[0]);
  to = (to & ~lanes) | (*lanes_of<uint32_t>(warp, instruction.operand[1]) & lanes);
}

}  // namespace

void add_moves(Operations& o) {
  for (const char kind : {'b', 'u', 's'}) {
    add_type<uint16_t>(o, std::string{kind} + "16");
    add_type<uint32_t>(o, std::string{kind} + "32");
    add_type<uint64_t>(o, std::string{kind} + "64");
  }
  add_type<uint32_t>(o, "f32");
  add_type<uint64_t>(o, "f64");
  o["mov.pred"] = {copy_predicate, "p:p", Kind::moves};
  // Global addresses are generic ones.  PTX ISA 9.7.9.20.
  o["cvta.to.global.u64"] = o["mov.u64"];
  add_comparisons<int16_t>(o, "s16");
  add_comparisons<uint16_t>(o, "u16");
  add_comparisons<uint16_t>(o, "b16");
  add_comparisons<int32_t>(o, "s32");
  add_comparisons<uint32_t>(o, "u32");
  add_comparisons<uint32_t>(o, "b32");
  add_comparisons<int64_t>(o, "s64");
  add_comparisons<uint64_t>(o, "u64");
  add_comparisons<uint64_t>(o, "b64");
  add_comparisons<float>(o, "f32");
  add_comparisons<double>(o, "f64");
  add_unordered<float>(o, "f32");
  add_unordered<double>(o, "f64");
  add_halves<uint16_t, uint32_t>(o, "b32");
  add_halves<uint32_t, uint64_t>(o, "b64");
}

}  // namespace fp8kv::ptx
