// Everything about the scales of one store.
#pragma once

#include <string>
#include <vector>

#include "scales/read/found_scales.h"
#include "scales/read/scale_store.h"

namespace fp8kv {

// What find_scales.h says of survey_scales. Errors in the files become the refusal; what cannot be
// read throws.
FoundScales survey(const ScaleStore& store);

// The tensors that a survey reads values of, by name.
std::vector<std::string> surveyed_tensors(const ScaleStore& store);

// Whether there is anything that is a scale by its name.
bool has_scale_names(const ScaleStore& store);

}  // namespace fp8kv
