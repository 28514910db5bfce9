// The embedded default: all cores, vectorised, weights used in place from the file mapping.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace fp8kv {

// Instruction sets the kernels are written for, in rising order; `best` picks at run time.
enum class CpuIsa { portable, avx2, avx512, avx512_bf16 };

// The best set this processor has.
CpuIsa best_cpu_isa();

// `threads` 0: one per physical core this process may use. Results are the same bits for any
// number of threads. `isa` is for tests; throws a device error if the processor lacks it.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, CpuIsa isa = best_cpu_isa());

}  // namespace fp8kv
