// Turns a lane's address into an address of the host's memory, with checks.
#pragma once

#include <string>

#include "kernels/ptx/machine/warp.h"

namespace fp8kv::ptx {

// Faults unless the address is a multiple of `bytes` and an allocation holds all of them. Notes the
// use.   how: see TouchedParts
std::byte* global_bytes(Warp& warp, int lane, uint64_t address, uint32_t bytes, uint8_t how);

// The address in the block's shared memory, checked in the same way.
uint32_t shared_address(Warp& warp, const Operand& operand, int64_t offset, int lane,
                        uint32_t bytes);

// Faults if SharedMemory found something wrong.
inline void note(const Warp& warp, int lane, const std::string& wrong) {
  if (!wrong.empty()) fault(warp, lane, wrong);
}

}  // namespace fp8kv::ptx
