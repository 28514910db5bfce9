// The error of a K cache in attention scores, for any exponents of the channels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calib/key_samples.h"
#include "core/kv_format.h"
#include "equalize/channel_groups.h"
#include "equalize/exponents.h"

namespace fp8kv {

// The sum over a head's rows of (e - mean e)' M (e - mean e). e is the cache's error in K, scaled
// back. The mean is over the row's window, and M is the moment of Q. A constant added to all scores
// of a query changes no attention weight, so the mean is subtracted.
class KeyError {
 public:
  // `sample` and `groups` must outlive this object. `stored`: the stored scale, for formats that
  // have one.
  KeyError(const HeadSample& sample, const ChannelGroups& groups, KvFormat format, float stored);

  // Sets all exponents.
  void set(const Exponents& exponents);
  double value() const { return value_; }
  // The value of each window; they sum to value().
  std::vector<double> by_window() const;

  // The value if one group had `exponent`.
  double value_with(size_t group, int exponent);
  // Sets the exponent of one group.
  void change(size_t group, int exponent);

 private:
  struct Change {
    size_t channel;
    float error;  // new minus old
  };
  void find_touched(size_t group);
  void set_factors(size_t group, int exponent);
  void changes_of(size_t row);
  double gain_of(size_t row);
  void encode(size_t row, std::span<const size_t> parts);
  float* errors(size_t row) { return errors_.data() + row * dim_; }
  float* weighed(size_t row) { return weighed_.data() + row * dim_; }
  double squared(std::span<const double> sums) const;
  double centre(size_t window, std::span<const double> sums) const;
  size_t rows_of(size_t window) const;
  void refresh();

  const HeadSample& sample_;
  const ChannelGroups& groups_;
  KvRow row_;
  float stored_;
  size_t dim_;
  Exponents exponents_;          // [groups]
  std::vector<float> factors_;   // [dim]
  std::vector<float> inverse_;   // [dim]: 1 / factors_
  std::vector<float> product_;   // [dim]
  std::vector<float> scaled_;    // [dim]: the row that is being encoded
  std::vector<uint8_t> bytes_;   // one row
  std::vector<float> errors_;    // [rows, dim]
  std::vector<float> weighed_;   // [rows, dim]: M times the error
  std::vector<double> sums_;     // [windows, dim]: sums of errors
  std::vector<size_t> parts_;    // parts of a row that a group touches
  std::vector<size_t> touched_;  // channels of these parts
  std::vector<Change> changes_;
  double value_ = 0;
};

}  // namespace fp8kv
