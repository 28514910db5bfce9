// Modules beside the program, fp8kv_<name>.so: where they lie, and which of them may be loaded.
// Knows nothing of what a module does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

// "fp8kv_<name>.so".
std::string module_file_name(const std::string& name);

// The folders that may hold modules: the program's own folder, then ../lib/fp8kv from there.
std::vector<std::filesystem::path> module_folders();

std::optional<std::filesystem::path> find_module(const std::string& name);

// Loads the module and returns the address of its entry. The module stays loaded. Throws a device
// error where it is not installed (with `way_out`), where another user could have written it (see
// trusted_file.h), where it does not load, and where it has no such entry.
void* load_module(const std::string& name, const char* entry, const std::string& way_out);

}  // namespace fp8kv
