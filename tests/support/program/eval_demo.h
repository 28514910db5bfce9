// Runs `fp8kv eval` on the demo model and its text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

inline const std::string kDemo = (source_dir() / "datasets/demo").string();
inline const std::string kText = (source_dir() / "datasets/calibration.txt").string();

// `fp8kv eval` on windows of the demo's text.
inline CliResult eval_windows(const TempDir& folder, int windows, int tokens,
                              const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"eval",       kDemo,       "--data",    kText, "--samples",
                                        cat(windows), "--seq-len", cat(tokens), "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_cli(arguments, folder.path());
}

// Enough text for meaningful figures and verdicts.
inline constexpr int kWindows = kSanitized ? 8 : 6;
inline constexpr int kTokens = kSanitized ? 128 : 256;
inline CliResult eval(const TempDir& folder, const std::vector<std::string>& more) {
  return eval_windows(folder, kWindows, kTokens, more);
}

// Little text, for tests of names, files and shapes but not of figures.
inline CliResult eval_little(const TempDir& folder, const std::vector<std::string>& more) {
  return eval_windows(folder, 2, 32, more);
}

// Line `number` of a text, from 0.
inline std::string line(const std::string& text, size_t number) {
  size_t at = 0;
  for (; number > 0; --number) at = text.find('\n', at) + 1;
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace fp8kv::test
