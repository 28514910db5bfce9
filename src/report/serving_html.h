// What it takes to serve the headline's cache: its command, and the scales it has.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// vLLM's command. "" where no FP8 cache was measured.
std::string serve_words(const EvalReport& report);

// The scales of each layer; of heads of their own, the range. "" where the cache has none.
std::string scales_table(const EvalReport& report);
std::string scales_table(const KvScales& scales, const std::string& whose);

}  // namespace fp8kv
