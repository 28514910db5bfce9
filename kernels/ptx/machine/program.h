// A kernel ready to run: decoded instructions, and the places of its registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ptx/machine/parse.h"

namespace fp8kv::ptx {

struct Warp;
struct Instruction;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

// Runs an instruction for the lanes whose bits are set.
using Run = void (*)(Warp& warp, const Instruction& instruction, uint32_t lanes);

enum class Kind : uint8_t {
  plain,
  moves,    // copies its source, which may be a register that nothing was written to
  packs,    // the same, of two halves into a whole
  unpacks,  // and of a whole into its halves
  narrows,  // reads the lower half of its source
  chooses,  // selp: looks at one of its two sources only
  branch,
  leaves,   // ret, exit
  gathers,  // needs all lanes of its mask at once
  whole,    // needs all 32 lanes at once
  barrier,  // waits at the block's barrier
};

struct Operand {
  uint32_t at = 0;     // offset of its lanes, in bytes
  uint32_t index = 0;  // index of its mask in Warp::defined
};

inline constexpr int kMostOperands = 14;

struct Instruction {
  Run run = nullptr;
  Operand operand[kMostOperands];  // the written ones first
  uint8_t n_written = 0;
  uint8_t n_operands = 0;
  Kind kind = Kind::plain;
  bool guarded = false;
  bool negated = false;
  Operand guard;
  int64_t offset = 0;  // added to an address
  int32_t immediate = 0;
  uint32_t target = 0;  // for branches
};

// A register that the executor fills in, with a constant or with a value of the launch.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  laneid,
  parameters
};

struct SpecialRegister {
  Special special;
  Operand operand;
  uint32_t offset = 0;  // for parameters
};

struct Program {
  std::string name;  // the name in the source
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t most_threads = 0;
  std::vector<Instruction> code;
  std::vector<std::string> text;     // one per instruction
  std::vector<std::byte> registers;  // at the start of a warp; [register][kLanes]
  size_t first_constant = 0;         // bytes of the registers before those with constants
  std::vector<uint32_t> defined;     // at the start of a warp, by register
  std::vector<SpecialRegister> specials;
  std::map<std::string, std::vector<std::byte>> tables;  // the module's tables that it reads
};

}  // namespace fp8kv::ptx
