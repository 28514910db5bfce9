// Chooses columns of the runtime table by names such as "vllm@0.33".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scales/rules/runtime_rules.h"

namespace fp8kv {

struct ChosenRuntime {
  const RuntimeColumn* column = nullptr;
  std::string version = {};                   // as the user wrote it; "" for the whole column
  std::optional<RuntimeVersion> number = {};  // `version` as a number
};

// Parses NAME (the newest versions), NAME@VERSION, NAME@all, or all. VERSION may have a suffix as
// pip shows it ("0.5.23.post1", "0.33.0+cu129"), or be the key of a branch or backend. Case does
// not matter. Throws a usage error that lists the known names.
std::vector<ChosenRuntime> choose_runtimes(const std::string& text);

// The newest versions of the runtimes that people usually serve with.
std::vector<ChosenRuntime> usual_runtimes();

// Returns "vLLM 0.33.0", or the versions of the column: "vLLM 0.25 and newer".
std::string runtime_text(const ChosenRuntime& chosen);

}  // namespace fp8kv
