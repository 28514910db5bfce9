#include <string>

#include <doctest/doctest.h>

#include "base/machine/processor_name.h"
#include "support/temp_dir.h"

namespace fp8kv {

TEST_CASE("processor_name: is what /proc/cpuinfo of either architecture says") {
  const test::TempDir folder;
  const auto name_of = [&](const std::string& text) {
    folder.write("cpuinfo", text);
    return processor_name(folder / "cpuinfo");
  };
  CHECK(name_of("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\n") == "AMD EPYC 7763");
  const std::string arm = "processor\t: 0\nCPU implementer\t: ";
  CHECK(name_of(arm + "0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n") == "Arm Neoverse V1");
  CHECK(name_of(arm + "0x41\nCPU part\t: 0xd4f\nprocessor\t: 1\n") == "Arm Neoverse V2");
  CHECK(name_of(arm + "0x41\nCPU part\t: 0xfff\n") == "Arm, implementer 0x41, part 0xfff");
  CHECK(name_of(arm + "0x61\nCPU part\t: 0xd40\n") == "Arm, implementer 0x61, part 0xd40");
  CHECK(name_of("processor\t: 0\n") == "");
  CHECK(processor_name(folder / "none") == "");
}

}  // namespace fp8kv
