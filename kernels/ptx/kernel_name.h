// The name of a kernel as people write it.
#pragma once

#include <string>

namespace fp8kv::ptx {

// "rmsnorm_any_kernel<F16, F32>" of a mangled name. Other names stay as they are.
std::string readable_name(const std::string& mangled);

}  // namespace fp8kv::ptx
