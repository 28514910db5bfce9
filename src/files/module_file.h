// Finds and loads modules beside the program, fp8kv_<name>.so, if they may be loaded. What a module
// does is not known here.
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
// error if the module is not installed (with `way_out`), does not load or has no such entry. Also
// throws if another user could have written it (see trusted_file.h).
void* load_module(const std::string& name, const char* entry, const std::string& way_out);

}  // namespace fp8kv
