// Backends that live in modules beside the program, fp8kv_<name>.so, so that it starts on machines
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

// What a module exports, as C: a backend that the caller deletes, or null and in `reason` why not,
// on a second line what to do. `version` is the program's: a module of another one refuses.
using OpenPlugin = Backend* (*)(const char* version, char* reason, size_t reason_bytes);
inline constexpr char kOpenPlugin[] = "fp8kv_open_backend";

// Where modules are looked for: the program's own folder, then ../lib/fp8kv from there.
std::vector<std::filesystem::path> plugin_folders();

std::optional<std::filesystem::path> find_plugin(const std::string& name);

// Throws a device error that says why it cannot be had: not installed, not loadable, no device.
std::unique_ptr<Backend> load_plugin(const std::string& name);

}  // namespace fp8kv
