// The greedy texts of the advised cache beside the baseline's.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// Shows each pair of texts with a mark where they part. Markup; "" without such texts.
std::string greedy_texts_part(const EvalReport& report);

}  // namespace fp8kv
