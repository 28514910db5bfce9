// Parts of a page: the commands that serve the advised cache, and its scales.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// serving_of as a paragraph and a box. "" if no quantised cache was measured.
std::string serve_words(const EvalReport& report);

// The scales of each layer; a range if heads have their own. "" if the cache has no scales.
std::string scales_table(const EvalReport& report);
std::string scales_table(const KvScales& scales, const std::string& whose);

}  // namespace fp8kv
