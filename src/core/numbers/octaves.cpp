#include "core/numbers/octaves.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr int kBinsPerOctave = 64;
constexpr int kOctaves = kLastOctave - kFirstOctave + 1;
static_assert(kMagnitudeBins == (kOctaves + 1) * kBinsPerOctave);  // one is for zeros

// Drops empty octaves at both ends, so that equal counts are equal objects.
void trim(OctaveCounts& octaves) {
  std::vector<uint64_t>& counts = octaves.counts;
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  const auto held = std::find_if(counts.begin(), counts.end(), [](uint64_t n) { return n > 0; });
  octaves.first =
      held == counts.end() ? 0 : octaves.first + static_cast<int>(held - counts.begin());
  counts.erase(counts.begin(), held);
}

}  // namespace

uint64_t OctaveCounts::nonzero() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

uint64_t OctaveCounts::below(int exponent) const {
  const auto octaves = std::clamp<int64_t>(int64_t{exponent} - first, 0, std::ssize(counts));
  return std::accumulate(counts.begin(), counts.begin() + octaves, uint64_t{0});
}

int OctaveCounts::median_octave() const {
  const uint64_t half = (nonzero() + 1) / 2;
  FP8KV_ASSERT(half > 0);
  uint64_t passed = 0;
  int octave = first;
  for (const uint64_t count : counts) {
    passed += count;
    if (passed >= half) break;
    ++octave;
  }
  return octave;
}

void OctaveCounts::add(const OctaveCounts& other) {
  zeros += other.zeros;
  if (other.counts.empty()) return;
  if (counts.empty()) first = other.first;
  const int end = std::max(first + static_cast<int>(counts.size()),
                           other.first + static_cast<int>(other.counts.size()));
  const int begin = std::min(first, other.first);
  counts.insert(counts.begin(), static_cast<size_t>(first - begin), 0);
  counts.resize(static_cast<size_t>(end - begin));
  first = begin;
  for (size_t i = 0; i < other.counts.size(); ++i) {
    counts[static_cast<size_t>(other.first - begin) + i] += other.counts[i];
  }
}

int octave_of(float magnitude) {
  return std::min(std::ilogb(magnitude), kLastOctave);
}

OctaveCounts octaves_of(std::span<const uint64_t> bins) {
  FP8KV_ASSERT(bins.size() == kMagnitudeBins);
  const auto sum_of = [&](int octave) {
    const auto begin = bins.begin() + octave * kBinsPerOctave;
    return std::accumulate(begin, begin + kBinsPerOctave, uint64_t{0});
  };
  OctaveCounts octaves;
  octaves.zeros = sum_of(0);
  octaves.first = kFirstOctave;
  for (int octave = 1; octave <= kOctaves; ++octave) octaves.counts.push_back(sum_of(octave));
  trim(octaves);
  return octaves;
}

}  // namespace fp8kv
