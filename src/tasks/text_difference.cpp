#include "tasks/text_difference.h"

#include <algorithm>
#include <vector>

namespace fp8kv {

TextDifference difference_of(std::span<const TaskAnswer> answers,
                             std::span<const TaskAnswer> baseline) {
  TextDifference difference;
  difference.compared = std::min(answers.size(), baseline.size());
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
