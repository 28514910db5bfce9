#include "kernels/ptx/operations/addresses.h"

#include "base/text.h"

namespace fp8kv::ptx {
namespace {

[[noreturn]] void fault_at(const Warp& warp, int lane, uint64_t address, uint32_t bytes,
                           const std::string& why) {
  fault(warp, lane, cat(bytes, " bytes at address ", address, ": ", why));
}

}  // namespace

std::byte* find_global_bytes(Warp& warp, int lane, uint64_t address, uint32_t bytes, uint8_t how) {
  if (address % bytes != 0) {
    fault_at(warp, lane, address, bytes, cat("expected a multiple of ", bytes));
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
  warp.near[warp.next_near++ % Warp::kNear] = found;
  return global_bytes(warp, lane, address, bytes, how);
}

void fault_shared(const Warp& warp, int lane, uint32_t address, uint32_t bytes) {
  fault_at(warp, lane, address, bytes,
           address % bytes != 0
               ? cat("expected a multiple of ", bytes)
               : cat("expected them in the ", warp.shared->size(), " bytes of shared memory"));
}

}  // namespace fp8kv::ptx
