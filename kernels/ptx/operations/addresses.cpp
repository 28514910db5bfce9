#include "kernels/ptx/operations/addresses.h"

#include "base/text.h"

namespace fp8kv::ptx {
namespace {

[[noreturn]] void fault_at(const Warp& warp, int lane, uint64_t address, uint32_t bytes,
                           const std::string& why) {
  fault(warp, lane, cat(bytes, " bytes at address ", address, ": ", why));
}

}  // namespace

std::byte* global_bytes(Warp& warp, int lane, uint64_t address, uint32_t bytes, uint8_t how) {
  if (address % bytes != 0) {
    fault_at(warp, lane, address, bytes, cat("expected a multiple of ", bytes));
  }
  const auto use = [&](const FoundMemory& memory) {
    if (memory.touched != nullptr) memory.touched->touch(address - memory.range.begin, how);
    return reinterpret_cast<std::byte*>(address);
  };
  FoundMemory* near = warp.near;
  for (int i = 0; i < Warp::kNear; ++i) {
    if (near[i].range.holds(address, bytes)) return use(near[i]);
  }
  FoundMemory found = warp.global->find(address, bytes);
  for (const auto& [name, table] : warp.program->tables) {
    const auto begin = reinterpret_cast<uint64_t>(table.data());
    if (const Range of{begin, begin + table.size()}; of.holds(address, bytes))
      found = {of, nullptr};
  }
  if (found.range.end == 0) {
    fault_at(warp, lane, address, bytes,
             warp.global->was_released(address) ? "their memory was given back"
                                                : "expected them in one allocation of the device");
  }
  near[warp.next_near++ % Warp::kNear] = found;
  return use(found);
}

uint32_t shared_address(Warp& warp, const Operand& operand, int64_t offset, int lane,
                        uint32_t bytes) {
  const uint32_t address = lanes_of<uint32_t>(warp, operand)[lane] + static_cast<uint32_t>(offset);
  if (address % bytes != 0) {
    fault_at(warp, lane, address, bytes, cat("expected a multiple of ", bytes));
  }
  if (uint64_t{address} + bytes > warp.shared->size()) {
    fault_at(warp, lane, address, bytes,
             cat("expected them in the ", warp.shared->size(), " bytes of shared memory"));
  }
  return address;
}

}  // namespace fp8kv::ptx
