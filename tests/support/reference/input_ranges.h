// The ranges of matrix inputs that transformers measured in random models, and the check against
// them.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace fp8kv::test {

// The models of tests/golden/make_input_ranges.py. They are family cases too.
std::vector<std::string> input_range_cases();

// CHECKs that a calibration on `backend` sees the largest input magnitudes of transformers, for the
// same matrices and no others.
void check_input_ranges(const std::string& name, Backend& backend);

}  // namespace fp8kv::test
