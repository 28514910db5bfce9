// What transformers multiplies each matrix of a random model by, and the check against it.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace fp8kv::test {

// The models of tests/golden/make_input_ranges.py, which are families' too.
std::vector<std::string> input_range_cases();

// CHECKs that the model's calibration on `backend` sees the largest magnitudes that transformers
// saw, and of no other matrix.
void check_input_ranges(const std::string& name, Backend& backend);

}  // namespace fp8kv::test
