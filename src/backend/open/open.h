// Backends by name. The CPU is built in; others are modules (plugin.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace fp8kv {

// Returns the names that --device accepts. "ptx" and "sim" run GPU kernels on the CPU; they are
// listed if their modules are there.
std::vector<std::string> device_names();

// The GPUs that "auto" tries, in this order.
std::vector<std::string> automatic_gpus();

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  // " (no GPU: <reason>)" where "auto" had to take the CPU; before it, of more threads than cores,
  // that they take turns.
  std::string why;
};

// "auto" takes the first GPU that can be had, else the CPU. `threads` is for the CPU; 0 means one
// per physical core that this process may use. Throws a device error that says why the device
// cannot be had.
OpenedBackend open_backend(const std::string& device, int threads);

}  // namespace fp8kv
