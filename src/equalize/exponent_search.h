// Searches the exponents with which a cache of K disturbs attention least. Pure: knows no files and
// no model.
#pragma once

#include <span>
#include <vector>

#include "calib/measure/key_samples.h"
#include "core/cache/kv_format.h"
#include "equalize/channel_groups.h"
#include "equalize/exponents.h"

namespace fp8kv {

struct SearchOptions {
  KvFormat format = KvFormat::int8_per_token_head;
  // The largest magnitude of the layer's K, from which stored scales follow.
  float amax = 1.0f;
  int passes = 3;  // over all groups; stops early if a pass changes nothing
};

// Returns exponents that all of `heads` share, one for each group, out of `allowed`. Runs
// coordinate descent from two starts, no exponents and equally large groups, and returns the better
// result.
Exponents search_exponents(std::span<const HeadSample> heads, const ChannelGroups& groups,
                           std::span<const ExponentSet> allowed, const SearchOptions& options);

// The errors of heads on one part of the text, before and after exponents, by window: sums over
// the scales that may be stored.
struct ErrorsOfHeads {
  std::vector<double> before, after;

  double ratio() const;  // ratio of the sums; 1 if nothing was lost before
};
ErrorsOfHeads errors_with(std::span<const HeadSample> heads, const ChannelGroups& groups,
                          const Exponents& exponents, const SearchOptions& options);

// Whether exponents found on other text hold up here: the error over all windows must fall to this
// share or below, and no window may get worse.
inline constexpr double kClearGain = 0.9;
bool holds_up(const ErrorsOfHeads& errors);

}  // namespace fp8kv
