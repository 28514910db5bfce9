// Parts of a page: whether the scales are safe, and how early calibration knew the ranges.
#pragma once

#include <string>

#include "eval/eval_report.h"
#include "report/certificate.h"

namespace fp8kv {

// A sortable table with every layer's margins and verdict; "" if no E4M3 cache was measured.
std::string certificate_table(const EvalReport& report);
std::string certificate_table(const Certificate& certificate, const std::string& whose);

// The conclusion for the model, as paragraphs. Has the flag that keeps layers in 16 bit, if some
// should be.
std::string certificate_verdict(const EvalReport& report);
// `values` names what the scales may lose: "values that were seen".
std::string certificate_verdict(const Certificate& certificate, const std::string& whose,
                                const char* values);

// The largest magnitudes after parts of the calibration text and in the evaluated text, as shares
// of those after the whole calibration text. "" if both texts are the same.
std::string convergence_figure(const EvalReport& report);
std::string convergence_table(const EvalReport& report);

}  // namespace fp8kv
