// A warp that runs a program: its registers, and its state for instructions.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ptx/machine/memory.h"
#include "kernels/ptx/machine/program.h"

namespace fp8kv::ptx {

// An asynchronous copy in flight.
struct Copy {
  int lane;
  uint32_t group;
  uint32_t to;
  const std::byte* from;
  uint32_t bytes;  // in shared memory
  uint32_t valid;  // bytes from global memory; the rest are zero
};

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
};

struct Warp {
  const Program* program = nullptr;
  std::byte* registers = nullptr;  // [register][kLanes]
  std::vector<uint32_t> defined;   // by register, the lanes that were written to
  std::vector<uint32_t> low;       // the same for the register's lower half
  uint32_t live = 0;               // lanes that have not left
  uint32_t waiting = 0;            // lanes before an instruction that needs others
  bool at_barrier = false;
  uint32_t pc[kLanes] = {};
  uint32_t at = 0;  // the instruction that runs
  int index = 0;    // in its block
  Extent block_index;
  SharedMemory* shared = nullptr;
  const GlobalMemory* global = nullptr;
  static constexpr int kNear = 4;
  FoundMemory near[kNear];  // allocations that were used last
  uint32_t next_near = 0;
  Range parameters;  // memory of this launch's parameters
  std::vector<Copy> copies;
  uint32_t groups[kLanes] = {};  // committed
};

template <typename T>
T* lanes_of(Warp& warp, const Operand& operand) {
  return reinterpret_cast<T*>(warp.registers + operand.at);
}

// Calls work(lane) for each lane of the mask.
template <typename Work>
inline void each_lane(uint32_t lanes, const Work& work) {
  if (lanes == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) work(lane);
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) work(std::countr_zero(lanes));
}

// Throws an error that names the kernel, the instruction, the block and the thread.
[[noreturn]] void fault(const Warp& warp, int lane, const std::string& what);

// Runs a warp until its lanes have left or wait at the block's barrier. Returns the number of
// instructions, each counted once per lane.
uint64_t run_warp(Warp& warp);

}  // namespace fp8kv::ptx
