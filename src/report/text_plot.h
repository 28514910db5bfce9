// Plots for a terminal: ranges of K and V against the format's limits, and of an evaluation the
// error of the attention output too.
#pragma once

#include <string>

#include "core/scales.h"
#include "eval/eval_report.h"

namespace fp8kv {

// How wide plots are drawn by commands: as a page of --help.
inline constexpr int kPlotColumns = 80;

// Lines of at most `width` columns; narrower than 64 counts as 64. Foreign names are made safe to
// print and cut to fit.
std::string text_plot(const EvalReport& report, int width);

// The ranges alone, of scales that know what they were made from; the same lines. REQUIRES the
// largest magnitudes of every layer in their provenance.
std::string text_plot(const KvScales& scales, int width);

}  // namespace fp8kv
