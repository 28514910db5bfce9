#include "tasks/compare/text_difference.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fp8kv {
namespace {

// Sets the mean over all tokens and its error, by the ratio estimator over texts.
void set_divergence(std::span<const TaskAnswer> answers, TextDifference& difference) {
  double kld = 0, tokens = 0;
  for (const TaskAnswer& each : answers) {
    kld += each.generated->divergence.kld;
    tokens += static_cast<double>(each.generated->divergence.tokens);
  }
  if (tokens == 0) return;
  difference.kld = kld / tokens;
  double squares = 0;
  for (const TaskAnswer& each : answers) {
    const TextDivergence& own = each.generated->divergence;
    const double residual = own.kld - difference.kld * static_cast<double>(own.tokens);
    squares += residual * residual;
  }
  const auto n = static_cast<double>(answers.size());
  if (n > 1) difference.kld_error = std::sqrt(squares * n / (n - 1)) / tokens;
}

}  // namespace

TextDifference difference_of(std::span<const TaskAnswer> answers,
                             std::span<const TaskAnswer> baseline) {
  TextDifference difference;
  difference.compared = std::min(answers.size(), baseline.size());
  set_divergence(answers.first(difference.compared), difference);
  std::vector<uint64_t> places;
  for (size_t i = 0; i < difference.compared; ++i) {
    const GeneratedText& own = *answers[i].generated;
    const GeneratedText& other = *baseline[i].generated;
    if (own.text == other.text) {
      ++difference.identical;
      continue;
    }
    const auto parted = std::ranges::mismatch(own.ids, other.ids);
    places.push_back(static_cast<uint64_t>(parted.in1 - own.ids.begin()) + 1);
  }
  if (places.empty()) return difference;
  const auto middle = places.begin() + static_cast<std::ptrdiff_t>((places.size() - 1) / 2);
  std::nth_element(places.begin(), middle, places.end());
  difference.median_place = *middle;
  return difference;
}

}  // namespace fp8kv
