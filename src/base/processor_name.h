// What Linux calls the processor; nothing about what it can do.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv {

// From /proc/cpuinfo, or another file of its form: on x86-64 the model's name, on aarch64, which
// has numbers there, that of Arm's cores, or the numbers. "" where the file has neither.
std::string processor_name(const std::filesystem::path& cpuinfo);

}  // namespace fp8kv
