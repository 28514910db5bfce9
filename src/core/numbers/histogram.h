// Counts the magnitudes of many values: an exact maximum and a histogram. A bin is the top bits of
// the float itself. So no range is needed beforehand, and histograms of batches, heads and devices
// add up exactly in any order.
#pragma once

#include <cstdint>

#include "core/numbers/half.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// 64 binades from 2^-40 to 2^24, 64 bins each: every bin is at most 1.6 % wide.
inline constexpr int kMagnitudeFirstExponent = -40;
inline constexpr int kMagnitudeBinsPerOctave = 64;
inline constexpr int kMagnitudeBins = 64 * kMagnitudeBinsPerOctave;

// The statistics of one head, as 64-bit words. [0]: the bits of the largest finite |x|. [1]: the
// number of NaN and infinite values, which no other word counts. [2...]: the bins.
inline constexpr int kMagnitudeAmax = 0;
inline constexpr int kMagnitudeNonfinite = 1;
inline constexpr int kMagnitudeFirstBin = 2;
inline constexpr int kMagnitudeWords = kMagnitudeFirstBin + kMagnitudeBins;

// The bin of a finite magnitude, given as bits(|x|). Magnitudes below the range (and zero) fall
// into bin 0, magnitudes above it into the last bin.
FP8KV_HD int magnitude_bin(uint32_t magnitude_bits) {
  constexpr int kFirst = (127 + kMagnitudeFirstExponent) * kMagnitudeBinsPerOctave;
  const int bin = static_cast<int>(magnitude_bits >> 17) - kFirst;
  return bin < 0 ? 0 : (bin >= kMagnitudeBins ? kMagnitudeBins - 1 : bin);
}

// The smallest magnitude in a bin. For bin 0, which also takes everything below, the start of the
// range.
FP8KV_HD float magnitude_bin_floor(int bin) {
  constexpr int kFirst = (127 + kMagnitudeFirstExponent) * kMagnitudeBinsPerOctave;
  return float_from_bits(static_cast<uint32_t>(bin + kFirst) << 17);
}

}  // namespace fp8kv
