#include "show/eval/figure_text.h"

#include <cmath>

#include "base/text.h"
#include "show/output.h"

namespace fp8kv {

std::string plain_number(double value, int digits) {
  const std::string text = significant(value, digits);
  const bool in_powers = text.find("e+") != text.npos && std::fabs(value) < 1e12;
  return in_powers ? fixed(std::stod(text), 0) : text;
}

std::string share_text(double share) {
  if (!std::isfinite(share)) return "NaN";
  return share == 0 ? "0" : plain_number(share * 100, 3) + "%";
}

std::string delta_text(const TokenFigures& figures) {
  if (!std::isfinite(figures.ppl_delta)) return "NaN";
  const std::string sign = figures.ppl_delta < 0 ? "" : "+";
  return cat(sign, plain_number(figures.ppl_delta * 100, 3), "% ± ",
             plain_number(figures.ppl_delta_error * 100, 2), "%");
}

std::string kld_text(const TokenFigures& figures) {
  return cat(significant(figures.kld, 3), " ± ", significant(figures.kld_error, 2));
}

}  // namespace fp8kv
