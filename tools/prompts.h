// What `run` continues.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fp8kv {

// `given`, or else the prompts of `file` ("-": standard input): JSON lines with "prompt" or "text".
// Throws a usage Error when there are none of either, an input Error naming the line otherwise.
std::vector<std::string> read_prompts(const std::vector<std::string>& given,
                                      const std::filesystem::path& file);

}  // namespace fp8kv
