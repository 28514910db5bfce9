// Writes the page of every sample report into a folder: sample-NAME.html. For scripts/check_report.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "report/html_report.h"
#include "support/sample_report.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fp8kv_sample_reports FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  for (const auto& [name, report] : fp8kv::test::sample_reports()) {
    std::ofstream file(folder / ("sample-" + name + ".html"), std::ios::binary);
    file << fp8kv::html_report(report);
    if (!file.flush()) {
      std::cerr << "cannot write " << folder << "\n";
      return 3;
    }
  }
  return 0;
}
