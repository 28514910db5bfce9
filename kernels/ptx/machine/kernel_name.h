// The readable name of a kernel.
#pragma once

#include <string>

namespace fp8kv::ptx {

// Turns a mangled name into "rmsnorm_any_kernel<F16, F32>". Leaves other names unchanged.
std::string readable_name(const std::string& mangled);

}  // namespace fp8kv::ptx
