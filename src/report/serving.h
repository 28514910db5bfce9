// Tells in words and commands how to serve the advised cache.
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"

namespace fp8kv {

struct Serving {
  std::string words;                  // one or two sentences; "" if no quantised cache was measured
  std::vector<std::string> commands;  // in order; none if the cache is broken
};

// vLLM's command, and the commands that make its folder. TEXT stands for files that the report does
// not name.
Serving serving_of(const EvalReport& report);

}  // namespace fp8kv
