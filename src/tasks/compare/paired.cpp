#include "tasks/compare/paired.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr double kNormal975 = 1.959963984540054;

// Wilson's interval for the share x / n, with `z` standard deviations to each side.
std::pair<double, double> wilson(double x, double n, double z) {
  const double middle = 2 * x + z * z;
  const double width = z * std::sqrt(z * z + 4 * x * (1 - x / n));
  const double scale = 2 * (n + z * z);
  return {std::max(0.0, (middle - width) / scale), std::min(1.0, (middle + width) / scale)};
}

}  // namespace

void PairedCounts::add(bool right, bool baseline_right) {
  uint64_t& count = right ? (baseline_right ? both : wins) : (baseline_right ? losses : none);
  ++count;
}

double share_error(uint64_t right, uint64_t items) {
  if (items < 2) return 0;
  const double share = static_cast<double>(right) / static_cast<double>(items);
  return std::sqrt(share * (1 - share) / static_cast<double>(items - 1));
}

double mcnemar_p(uint64_t wins, uint64_t losses) {
  const uint64_t n = wins + losses;
  const auto log_choose = [&](uint64_t k) {
    return std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
           std::lgamma(static_cast<double>(n - k) + 1);
  };
  double tail = 0;
  for (uint64_t k = 0; k <= std::min(wins, losses); ++k) {
    tail += std::exp(log_choose(k) - static_cast<double>(n) * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Recovery recovery_of(const PairedCounts& counts) {
  const auto x = static_cast<double>(counts.right());
  const auto y = static_cast<double>(counts.baseline_right());
  FP8KV_ASSERT(y > 0);
  // Leaves out items that both have wrong: they say nothing about a ratio.
  const auto n = static_cast<double>(counts.both + counts.wins + counts.losses);
  const auto apart = static_cast<double>(counts.wins + counts.losses);
  const double a = std::sqrt((apart + 2) / ((x + 1) * (y + 1)));
  const double b = std::sqrt((1 - (x + 1) / (n + 2)) / (x + 1));
  const double c = std::sqrt((1 - (y + 1) / (n + 2)) / (y + 1));
  const double z = kNormal975 * a / (b + c);
  const auto [x_low, x_high] = wilson(x, n, z);
  const auto [y_low, y_high] = wilson(y, n, z);
  const double infinite = std::numeric_limits<double>::infinity();
  return {x / y, x_low / y_high, y_low > 0 ? x_high / y_low : infinite};
}

}  // namespace fp8kv
