// The words that a real shell makes of a printed command, up to the first '&&'. The shell runs
// nothing, unless a hostile name in the line gets through.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/program/run_cli.h"

namespace fp8kv::test {

inline std::vector<std::string> shell_words(const std::string& line,
                                            const std::filesystem::path& folder) {
  const CliResult result =
      run_cli({"--noprofile", "--norc", "-c", "fp8kv() { :; }; printf '%s\\0' " + line},
              {.folder = folder, .program = "/bin/bash"});
  CHECK_MESSAGE(result.exit_code == 0, line, result.err);
  std::vector<std::string> words;
  for (size_t at = 0, end; (end = result.out.find('\0', at)) != std::string::npos; at = end + 1) {
    words.push_back(result.out.substr(at, end - at));
  }
  return words;
}

}  // namespace fp8kv::test
