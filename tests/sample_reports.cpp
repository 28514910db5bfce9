// Writes the page of every sample report into a folder as sample-NAME.html, for
// scripts/check_report.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "support/sample_report.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fp8kv_sample_reports FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  for (const auto& [name, page] : fp8kv::test::sample_pages()) {
    std::ofstream file(folder / ("sample-" + name + ".html"), std::ios::binary);
    file << page;
    if (!file.flush()) {
      std::cerr << "cannot write " << folder << "\n";
      return 3;
    }
  }
  return 0;
}
