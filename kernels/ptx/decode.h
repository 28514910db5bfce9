// Turns a kernel's statements into a program that runs.
#pragma once

#include "kernels/ptx/machine/program.h"

namespace fp8kv::ptx {

// Throws a device error that names the kernel and the instruction if the executor does not know it.
Program decode(const ParsedKernel& kernel);

}  // namespace fp8kv::ptx
