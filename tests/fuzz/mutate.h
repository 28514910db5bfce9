// Random changes of an input: bytes, pieces, numbers, and words of file formats.
#pragma once

#include <string>

#include "base/rng.h"

namespace fp8kv::fuzz {

// Makes one to eight changes of `input`. Some copy a piece of `other`.
std::string mutated(std::string input, const std::string& other, Rng& rng);

}  // namespace fp8kv::fuzz
