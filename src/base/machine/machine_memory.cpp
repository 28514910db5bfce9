#include "base/machine/machine_memory.h"

#include <charconv>
#include <fstream>
#include <string>

namespace fp8kv {

MachineMemory machine_memory() {
  MachineMemory memory;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {  // "MemTotal:       24615628 kB"
    const size_t digits = line.find_first_of("0123456789");
    if (digits == line.npos) continue;
    uint64_t kib = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    if (line.starts_with("MemTotal:")) memory.total_bytes = kib << 10;
    if (line.starts_with("MemAvailable:")) memory.available_bytes = kib << 10;
  }
  return memory;
}

}  // namespace fp8kv
