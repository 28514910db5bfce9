// Runs a grid of blocks of a program.
#pragma once

#include <span>
#include <string>

#include "base/thread_pool.h"
#include "kernels/ptx/memory.h"
#include "kernels/ptx/program.h"
#include "kernels/ptx/warp.h"

namespace fp8kv::ptx {

struct Launch {
  Extent grid;
  Extent block;
  size_t shared_bytes = 0;
  size_t allowed_shared_bytes = 48 * 1024;  // more only where the kernel was given it
  uint64_t seed = 0;                        // of the order of warps; 0 is from first to last
  std::span<const std::byte> parameters;
};

// Says why a GPU would refuse the launch, and what it expects; "" if it would not.
// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
std::string why_not(const Program& program, const Launch& launch);

// Returns how many instructions ran, each counted once for every lane. Throws the first fault.
// REQUIRES why_not() == "".
uint64_t run_grid(const Program& program, const Launch& launch, const GlobalMemory& global,
                  ThreadPool& pool);

}  // namespace fp8kv::ptx
