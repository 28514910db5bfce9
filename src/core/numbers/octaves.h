// Magnitudes counted by power of two: the small part of a histogram that scale files keep. Counts
// can be added, so calibrations merge without loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numbers/histogram.h"

namespace fp8kv {

// The range that the histogram can tell apart. Smaller magnitudes count as zeros, and larger ones
// fall into the last octave.
inline constexpr int kFirstOctave = -39;
inline constexpr int kLastOctave = 23;

struct OctaveCounts {
  uint64_t zeros = 0;  // |x| < 2^kFirstOctave
  int first = 0;
  std::vector<uint64_t> counts;  // [i]: 2^(first+i) <= |x| < 2^(first+i+1); neither end is 0

  // The number of values that are not zeros.
  uint64_t nonzero() const;
  // The number of nonzero values below 2^exponent.
  uint64_t below(int exponent) const;
  // The octave that holds the median of the nonzero values: the lowest e such that at least half
  // of them are below 2^(e+1). REQUIRES nonzero() > 0.
  int median_octave() const;

  void add(const OctaveCounts& other);
  bool operator==(const OctaveCounts&) const = default;
};

// The octave that counts this magnitude. REQUIRES a finite magnitude of at least 2^kFirstOctave.
int octave_of(float magnitude);

// `bins`: [kMagnitudeBins] counts.
OctaveCounts octaves_of(std::span<const uint64_t> bins);

}  // namespace fp8kv
