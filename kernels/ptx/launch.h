// Runs a grid of blocks of a program.
#pragma once

#include <span>
#include <string>

#include "base/machine/thread_pool.h"
#include "kernels/ptx/machine/memory.h"
#include "kernels/ptx/machine/program.h"
#include "kernels/ptx/machine/warp.h"

namespace fp8kv::ptx {

struct Launch {
  Extent grid;
  Extent block;
  size_t shared_bytes = 0;
  size_t allowed_shared_bytes = 48 * 1024;  // more only if the kernel was given it
  uint64_t seed = 0;                        // orders the warps; 0: first to last
  std::span<const std::byte> parameters;
};

// The reason why a GPU would refuse the launch, and what it expects; "" if it would not refuse.
// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
std::string why_not(const Program& program, const Launch& launch);

// Returns the number of executed instructions, each counted once per lane. Throws the first fault.
// REQUIRES why_not() == "".
uint64_t run_grid(const Program& program, const Launch& launch, const GlobalMemory& global,
                  ThreadPool& pool);

}  // namespace fp8kv::ptx
