// The instructions that the executor knows, by their full names.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/ptx/machine/warp.h"

namespace fp8kv::ptx {

struct Operation {
  Run run = nullptr;
  // One letter per operand: first the written ones, then ':', then the rest. 2, 4 and 8 are
  // registers of so many bytes, and p is a predicate. g is an address in global memory, s one in
  // shared memory, i a number.
  std::string operands;
  Kind kind = Kind::plain;
};

using Operations = std::map<std::string, Operation, std::less<>>;

void add_integer_operations(Operations& operations);
void add_float_operations(Operations& operations);
void add_conversions(Operations& operations);
void add_moves(Operations& operations);
void add_warp_operations(Operations& operations);
void add_matrix_operations(Operations& operations);
void add_copy_operations(Operations& operations);
void add_atomic_operations(Operations& operations);

// All operations, made once.
const Operations& all_operations();

// ld, st and atom by their parts. space and type are those of the opcode; register_bytes is the
// size of each of the 1, 2 or 4 registers that are loaded or stored. find_access() returns null if
// there is no such access.
struct Access {
  std::string space;  // "global", "shared", "param"
  std::string type;   // "u32"
  int register_bytes;
  int registers;
  bool store;
};
Run find_access(const Access& access);

// A conversion whose registers are wider than its types; null if there is none.
Run find_wide_conversion(const std::string& opcode, int to_bytes, int from_bytes);

template <typename T>
constexpr char operand_of() {
  return static_cast<char>('0' + sizeof(T));
}

// to[lane] = F(from[lane]...) for each lane.
template <typename F, typename To, typename... From>
void map_lanes(Warp& warp, const Instruction& instruction, uint32_t lanes) {
  [&]<size_t... k>(std::index_sequence<k...>) {
    To* to = lanes_of<To>(warp, instruction.operand[0]);
    [&](const From*... from) {
      each_lane(lanes, [&](int lane) { to[lane] = F{}(from[lane]...); });
    }(lanes_of<From>(warp, instruction.operand[1 + k])...);
  }
  (std::index_sequence_for<From...>{});
}

template <typename To, typename... From, typename F>
void add_map(Operations& operations, const std::string& name, F) {
  operations[name] = {map_lanes<F, To, From...>,
                      std::string{operand_of<To>(), ':', operand_of<From>()...}};
}

}  // namespace fp8kv::ptx
