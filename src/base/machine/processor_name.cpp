#include "base/machine/processor_name.h"

#include <fstream>
#include <string_view>

#include "base/text.h"

namespace fp8kv {
namespace {

// The text after `key` and its colon, in the first line with that key; "" if there is none.
std::string value_of(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == line.npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != line.npos) return line.substr(begin);
  }
  return "";
}

// Source: the part numbers of MIDR_EL1 in each core's Technical Reference Manual.
struct ArmCore {
  std::string_view part;
  std::string_view name;
};
constexpr ArmCore kArmCores[] = {
    {"0xd0c", "Neoverse N1"}, {"0xd40", "Neoverse V1"}, {"0xd49", "Neoverse N2"},
    {"0xd4f", "Neoverse V2"}, {"0xd84", "Neoverse V3"}, {"0xd8e", "Neoverse N3"},
};

}  // namespace

std::string processor_name(const std::filesystem::path& cpuinfo) {
  const std::string model = value_of(cpuinfo, "model name");
  if (!model.empty()) return model;
  const std::string implementer = value_of(cpuinfo, "CPU implementer");
  const std::string part = value_of(cpuinfo, "CPU part");
  if (implementer.empty() || part.empty()) return "";
  if (implementer == "0x41") {
    for (const ArmCore& core : kArmCores) {
      if (core.part == part) return cat("Arm ", core.name);
    }
  }
  return cat("Arm, implementer ", implementer, ", part ", part);
}

}  // namespace fp8kv
