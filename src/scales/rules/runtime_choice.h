// Which columns of the table of runtimes someone asks for, by names such as "vllm@0.33".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scales/rules/runtime_rules.h"

namespace fp8kv {

struct ChosenRuntime {
  const RuntimeColumn* column = nullptr;
  std::string version = {};                   // as it was asked for; "" where the whole column was
  std::optional<RuntimeVersion> number = {};  // of that
};

// NAME, for the newest versions; NAME@VERSION, with what pip shows behind a version too
// ("0.5.23.post1", "0.33.0+cu129"); NAME@all; or all. A branch or a backend goes by the key of its
// column. Either case. Throws a usage error that lists what there is.
std::vector<ChosenRuntime> choose_runtimes(const std::string& text);

// The newest versions of the runtimes that people serve with.
std::vector<ChosenRuntime> usual_runtimes();

// "vLLM 0.33.0", or the versions of the column: "vLLM 0.25 and newer".
std::string runtime_text(const ChosenRuntime& chosen);

}  // namespace fp8kv
