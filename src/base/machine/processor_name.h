// The processor's name by Linux. Its features are not looked at.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv {

// Reads /proc/cpuinfo or another file of that form. On x86-64 this is the model name. On aarch64
// the file has numbers: known ones become the name of Arm's core, others stay numbers. "" if the
// file has no name and no numbers.
std::string processor_name(const std::filesystem::path& cpuinfo);

}  // namespace fp8kv
