// Whether the scales are safe, and how soon calibration knew the ranges: parts of a page.
#pragma once

#include <string>

#include "eval/eval_report.h"
#include "report/certificate.h"

namespace fp8kv {

// The margins of every layer and the verdict on it; "" where no E4M3 cache was measured. Sortable.
std::string certificate_table(const EvalReport& report);
std::string certificate_table(const Certificate& certificate, const std::string& whose);

// What follows from them for the model, in paragraphs, with the flag that keeps layers in 16 bit
// where some should be.
std::string certificate_verdict(const EvalReport& report);
// `values` are those that scales may lose: "values that were seen".
std::string certificate_verdict(const Certificate& certificate, const std::string& whose,
                                const char* values);

// Largest magnitudes after parts of the calibration text, as shares of those after all of it, and
// in the evaluated text; "" where that is the same text.
std::string convergence_figure(const EvalReport& report);
std::string convergence_table(const EvalReport& report);

}  // namespace fp8kv
