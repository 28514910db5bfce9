// Plots for a terminal: the ranges of K and V against the format's limits. For an evaluation, also
// the error of the attention output.
#pragma once

#include <string>

#include "core/scales/scales.h"
#include "eval/eval_report.h"

namespace fp8kv {

// The width of plots in commands, equal to that of --help.
inline constexpr int kPlotColumns = 80;

// Lines of at most `width` columns; widths below 64 count as 64. Foreign names are escaped and cut
// to fit.
std::string text_plot(const EvalReport& report, int width);

// Plots only the ranges, for scales with provenance, in the same lines. REQUIRES the largest
// magnitudes of every layer in the provenance.
std::string text_plot(const KvScales& scales, int width);

}  // namespace fp8kv
