// Backends by name. The CPU is built in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace fp8kv {

// What --device accepts.
std::vector<std::string> device_names();

// "auto" takes the best device there is. `threads` is for the CPU; 0 means one per physical core
// that this process may use. Throws a device error when the device is not there.
std::unique_ptr<Backend> open_backend(const std::string& device, int threads);

}  // namespace fp8kv
