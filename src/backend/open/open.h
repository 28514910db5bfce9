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
  // A note: " (no GPU: <reason>)" if "auto" fell back to the CPU. If there are more threads than
  // cores, a note before it says that they take turns.
  std::string why;
};

// Opens a backend: "auto" takes the first usable GPU, else the CPU. `threads` is for the CPU; 0
// means one per physical core that this process may use. Throws a device error with the reason if
// the device cannot be opened.
OpenedBackend open_backend(const std::string& device, int threads);

}  // namespace fp8kv
