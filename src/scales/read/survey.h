// Surveys all scales of one store.
#pragma once

#include <string>
#include <vector>

#include "scales/read/found_scales.h"
#include "scales/read/stores/scale_store.h"

namespace fp8kv {

// Does what find_scales.h says of survey_scales. Errors in the files become the refusal. Throws for
// files that cannot be read.
FoundScales survey(const ScaleStore& store);

// The names of the tensors whose values a survey reads, sorted.
std::vector<std::string> surveyed_tensors(const ScaleStore& store);

// Whether any tensor is named like a scale.
bool has_scale_names(const ScaleStore& store);

}  // namespace fp8kv
