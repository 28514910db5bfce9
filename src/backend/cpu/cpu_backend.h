// The embedded default: all cores, vectorised, weights used in place from the file mapping.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/isa/cpu_isa.h"

namespace fp8kv {

// `threads` 0: one per physical core that this process may use. Results have the same bits for any
// number of threads. `isa` is for tests. Throws a device error if the processor does not have it.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, CpuIsa isa = chosen_cpu_isa());

}  // namespace fp8kv
