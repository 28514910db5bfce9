// Looks for the exponents with which a cache of K disturbs attention least. Pure: no files, no
// model.
#pragma once

#include <span>
#include <vector>

#include "calib/key_samples.h"
#include "core/kv_format.h"
#include "equalize/channel_groups.h"
#include "equalize/exponents.h"

namespace fp8kv {

struct SearchOptions {
  KvFormat format = KvFormat::int8_per_token_head;
  // The largest magnitude that the layer's K has: stored scales follow from it.
  float amax = 1.0f;
  int passes = 3;  // over all groups, unless one changes nothing
};

// Exponents that all of `heads` share, one for each group, out of `allowed`. Coordinate descent
// from no exponents and from those that make groups equally large; the better end wins.
Exponents search_exponents(std::span<const HeadSample> heads, const ChannelGroups& groups,
                           std::span<const ExponentSet> allowed, const SearchOptions& options);

// The errors of heads on one part of the text, without exponents and with them. By window.
struct ErrorsOfHeads {
  std::vector<double> before, after;

  double ratio() const;  // of the sums; 1 where nothing was lost before
};
ErrorsOfHeads errors_with(std::span<const HeadSample> heads, const ChannelGroups& groups,
                          const Exponents& exponents, const SearchOptions& options);

// Whether exponents found on other text hold here: the error of all windows falls to this share or
// below, and no window gets worse.
inline constexpr double kClearGain = 0.9;
bool holds_up(const ErrorsOfHeads& errors);

}  // namespace fp8kv
