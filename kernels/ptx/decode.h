// From the statements of a kernel to a program that runs.
#pragma once

#include "kernels/ptx/program.h"

namespace fp8kv::ptx {

// Throws a device error that names the kernel and an instruction that the executor does not know.
Program decode(const ParsedKernel& kernel);

}  // namespace fp8kv::ptx
