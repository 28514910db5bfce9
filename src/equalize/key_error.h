// The error of a K cache in attention scores, for any exponents of the channels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "calib/measure/key_samples.h"
#include "core/cache/kv_format.h"
#include "equalize/channel_groups.h"
#include "equalize/exponents.h"

namespace fp8kv {

// The sum over a head's rows of (e - mean e)' M (e - mean e). e is the cache's error in K, scaled
// back. The mean is over the row's window, and M is the moment of Q. A constant added to all scores
// of a query changes no attention weight, so the mean is subtracted.
class KeyError {
 public:
  virtual ~KeyError() = default;

  // Sets all exponents and computes everything anew.
  virtual void set(const Exponents& exponents) = 0;
  // Returns the value if one group had `exponent`.
  virtual double value_with(size_t group, int exponent) = 0;
  // Sets the exponent of one group. The value gathers rounding errors until the next set().
  virtual void change(size_t group, int exponent) = 0;

  virtual double value() const = 0;
  // The value of each window; they sum to value().
  virtual std::vector<double> by_window() const = 0;
};

// `sample` and `groups` must outlive the result. `stored`: the stored scale, for formats that have
// one. REQUIRES a format that equalize is for: INT8 a token and head, or NVFP4.
std::unique_ptr<KeyError> make_key_error(const HeadSample& sample, const ChannelGroups& groups,
                                         KvFormat format, float stored);

}  // namespace fp8kv
