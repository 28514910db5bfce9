// The main plots of an evaluation for a terminal: ranges of K and V against the format's limits,
// and the error of the attention output.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// Lines of at most `width` columns; narrower than 64 counts as 64. Foreign names are made safe to
// print and cut to fit.
std::string text_plot(const EvalReport& report, int width);

}  // namespace fp8kv
