// Settings of the emulated device, from the variable FP8KV_PTX.
#pragma once

#include <cstdint>
#include <string>

namespace fp8kv::ptx {

struct Settings {
  int target = 90;        // the PTX that runs: 90 or 80
  uint64_t seed = 0;      // orders the warps; 0: first to last
  int threads = 2;        // host threads
  std::string kernels{};  // at the end, kernels and their launches are appended to this file
};

// "target=80,seed=7,threads=1,kernels=FILE" in any order. Throws a usage error for anything else.
Settings read_settings(const char* text);

}  // namespace fp8kv::ptx
