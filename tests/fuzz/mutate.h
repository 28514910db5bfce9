// Random changes of an input: bytes, pieces, numbers and words that file formats know.
#pragma once

#include <string>

#include "base/rng.h"

namespace fp8kv::fuzz {

// One to eight changes of `input`; some take a piece of `other`.
std::string mutated(std::string input, const std::string& other, Rng& rng);

}  // namespace fp8kv::fuzz
