// Figures of tokens as text for tables.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

// A number in plain notation while that stays readable: "3250", not "3.25e+03".
std::string plain_number(double value, int digits);
// "2.4%", "0.03%", "0": a share or relative error to three digits.
std::string share_text(double share);
// "+0.12% ± 0.05%": the change of perplexity with its standard error.
std::string delta_text(const TokenFigures& figures);
// "0.0214 ± 0.0011": the KL divergence with its standard error, in nats.
std::string kld_text(const TokenFigures& figures);

}  // namespace fp8kv
