// What the rules on runtimes are asked about.
#pragma once

#include <filesystem>

#include "scales/rules/runtime_facts.h"

namespace fp8kv {

// The facts of a model folder or a scale file.
FactSet facts_of(const std::filesystem::path& path);

}  // namespace fp8kv
