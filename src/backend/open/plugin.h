// Backends in modules beside the program, fp8kv_<name>.so. So the program starts on machines
// without their drivers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace fp8kv {

// The C function that a module exports. It returns a backend that the caller deletes, or null with
// the reason in `reason`, and a remedy on its second line. `version` is the program's
// module_version(): a module with another one refuses.
using OpenPlugin = Backend* (*)(const char* version, char* reason, size_t reason_bytes);
inline constexpr char kOpenPlugin[] = "fp8kv_open_backend";

// Folders to search for modules: the program's own, then ../lib/fp8kv from there.
std::vector<std::filesystem::path> plugin_folders();

std::optional<std::filesystem::path> find_plugin(const std::string& name);

// Throws a device error with the reason: not installed, not loadable, or no device.
std::unique_ptr<Backend> load_plugin(const std::string& name);

}  // namespace fp8kv
