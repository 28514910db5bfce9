// Which instruction sets this processor has.
#pragma once

#include <string_view>

#include "backend/cpu/cpu_backend.h"

namespace fp8kv {

bool has_cpu_isa(CpuIsa isa);

// "AVX-512 BF16".
std::string_view cpu_isa_name(CpuIsa isa);

}  // namespace fp8kv
