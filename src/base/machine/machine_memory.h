// The main memory of this machine.
#pragma once

#include <cstdint>

namespace fp8kv {

// A value is 0 if the system does not tell it.
struct MachineMemory {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // for new work, without swapping
};

MachineMemory machine_memory();

}  // namespace fp8kv
