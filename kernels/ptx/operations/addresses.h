// Turns a lane's address into an address of the host's memory, with checks.
#pragma once

#include <string>

#include "kernels/ptx/machine/warp.h"

namespace fp8kv::ptx {

// Does what global_bytes() does, and also finds memory that the warp did not use lately.
std::byte* find_global_bytes(Warp& warp, int lane, uint64_t address, uint32_t bytes, uint8_t how);

// Faults unless the address is a multiple of `bytes` and an allocation holds all of them. Notes the
// use.   how: see TouchedParts
inline std::byte* global_bytes(Warp& warp, int lane, uint64_t address, uint32_t bytes,
                               uint8_t how) {
  if (address % bytes == 0) {
    for (const FoundMemory& near : warp.near) {
      if (!near.range.holds(address, bytes)) continue;
      if (near.touched != nullptr) near.touched->touch(address - near.range.begin, how);
      return reinterpret_cast<std::byte*>(address);
    }
  }
  return find_global_bytes(warp, lane, address, bytes, how);
}

[[noreturn]] void fault_shared(const Warp& warp, int lane, uint32_t address, uint32_t bytes);

// The address in the block's shared memory, checked in the same way.
inline uint32_t shared_address(Warp& warp, const Operand& operand, int64_t offset, int lane,
                               uint32_t bytes) {
  const uint32_t address = lanes_of<uint32_t>(warp, operand)[lane] + static_cast<uint32_t>(offset);
  if (address % bytes != 0 || uint64_t{address} + bytes > warp.shared->size()) {
    fault_shared(warp, lane, address, bytes);
  }
  return address;
}

// Each checks an access to bytes of shared memory, notes it, and faults if a device does not allow
// it.
inline void read_shared(Warp& warp, int lane, uint32_t at, uint32_t bytes) {
  SharedMemory& shared = *warp.shared;
  if (shared.note_read(at, bytes, warp.index)) return;
  fault(warp, lane, shared.why_not_read(at, bytes, warp.index));
}
inline void write_shared(Warp& warp, int lane, uint32_t at, uint32_t bytes) {
  SharedMemory& shared = *warp.shared;
  if (shared.note_write(at, bytes, warp.index)) return;
  fault(warp, lane, shared.why_not_write(at, bytes, warp.index));
}

}  // namespace fp8kv::ptx
