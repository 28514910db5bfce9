// Kills commands at a file operation, to see what they leave.
#pragma once

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/places.h"
#include "support/program/run_cli.h"

namespace fp8kv::test {

// Kills runs of a command that makes `out`, at every `step`-th file operation, until one leaves
// `file`. Removes what the others leave. REQUIRES a fault_shim.
inline bool killed_after(const std::string& file, const std::filesystem::path& folder,
                         const std::vector<std::string>& command, int step = 1) {
  using Entries = std::vector<std::filesystem::directory_entry>;
  for (int at = 10; at < 400; at += step) {
    for (const auto& entry : Entries(std::filesystem::directory_iterator(folder), {})) {
      if (entry.path().filename().string().starts_with("out.")) {
        std::filesystem::remove_all(entry.path());
      }
    }
    const CliResult killed =
        run_cli(command, {.folder = folder,
                          .environment = {cat("LD_PRELOAD=", fault_shim()),
                                          cat("FP8KV_FAULT_AT=", at), "FP8KV_FAULT_ERRNO=0"}});
    REQUIRE(killed.exit_code == 128 + SIGKILL);
    if (std::filesystem::exists(folder / file)) return true;
  }
  return false;
}

}  // namespace fp8kv::test
