#include "equalize/key_error.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "equalize/key_codecs.h"

namespace fp8kv {
namespace {

// With more than one changed channel in so many, adding whole rows of M is faster.
constexpr size_t kSparse = 8;

// A part of a row, and the channels of the group in focus that lie in it.
struct TouchedPart {
  size_t part;
  std::vector<size_t> channels;
};

template <typename Codec>
class CodecKeyError final : public KeyError {
 public:
  CodecKeyError(const HeadSample& sample, const ChannelGroups& groups, const Codec& codec)
      : sample_(sample),
        groups_(groups),
        codec_(codec),
        dim_(static_cast<size_t>(sample.dim)),
        parts_(dim_ / codec.block),
        factors_(dim_),
        inverse_(dim_),
        product_(dim_),
        scaled_(sample.keys.size()),
        amaxes_(sample.rows() * parts_),
        scales_(sample.rows() * parts_),
        errors_(sample.keys.size()),
        weighed_(sample.keys.size()),
        sums_(sample.ends.size() * dim_),
        weighed_sums_(sample.ends.size() * dim_) {
    set(Exponents(groups.size()));
  }

  void set(const Exponents& exponents) override {
    exponents_ = exponents;
    focus_ = groups_.size();
    for (size_t g = 0; g < groups_.size(); ++g) set_factors(g, exponents[g]);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    each_row([&](size_t row, size_t window) { encode(row, window); });
    weigh_sums();
    value_ = 0;
    for (const double each : by_window()) value_ += each;
  }

  double value() const override { return value_; }

  std::vector<double> by_window() const override {
    std::vector<double> values(sample_.ends.size());
    each_row([&](size_t row, size_t window) {
      const float* error = errors_.data() + row * dim_;
      const float* weighed = weighed_.data() + row * dim_;
      for (size_t i = 0; i < dim_; ++i) values[window] += double{error[i]} * double{weighed[i]};
    });
    for (size_t window = 0; window < values.size(); ++window) {
      double centre = 0;
      for (size_t i = window * dim_; i < (window + 1) * dim_; ++i) {
        centre += sums_[i] * weighed_sums_[i];
      }
      if (rows_of(window) > 0) values[window] -= centre / static_cast<double>(rows_of(window));
    }
    return values;
  }

  double value_with(size_t group, int exponent) override {
    focus(group);
    set_factors(group, exponent);
    double value = value_;
    std::vector<double> moved(dim_);
    size_t row = 0;
    for (size_t window = 0; window < sample_.ends.size(); ++window) {
      std::fill(moved.begin(), moved.end(), 0.0);
      for (; row < sample_.ends[window]; ++row) {
        find_changes(row);
        value += gain_of(row);
        for (const Change& each : changes_) moved[each.channel] += double{each.moved};
      }
      value -= centre_gain(window, moved);
    }
    set_factors(group, exponents_[group]);
    return value;
  }

  void change(size_t group, int exponent) override {
    const double value = value_with(group, exponent);
    exponents_[group] = exponent;
    set_factors(group, exponent);
    each_row([&](size_t row, size_t window) {
      find_changes(row);
      take_changes(row, window);
    });
    weigh_sums();
    value_ = value;
    focus_ = groups_.size();
  }

 private:
  using Part = typename Codec::Part;
  struct Change {
    size_t channel;
    float error;  // the new one
    float moved;  // new minus old
  };

  template <typename Do>
  void each_row(const Do& act) const {
    size_t row = 0;
    for (size_t window = 0; window < sample_.ends.size(); ++window) {
      for (; row < sample_.ends[window]; ++row) act(row, window);
    }
  }

  size_t rows_of(size_t window) const {
    return sample_.ends[window] - (window == 0 ? 0 : sample_.ends[window - 1]);
  }

  void set_factors(size_t group, int exponent) {
    for (const int64_t channel : groups_[group]) {
      factors_[static_cast<size_t>(channel)] = std::ldexp(1.0f, exponent);
      inverse_[static_cast<size_t>(channel)] = std::ldexp(1.0f, -exponent);
    }
  }

  float error_of(const Part& codes, size_t row, size_t channel) const {
    const float key = sample_.keys[row * dim_ + channel];
    return codes.value(key * factors_[channel]) * inverse_[channel] - key;
  }

  // Encodes a row with all factors.
  void encode(size_t row, size_t window) {
    const float* keys = sample_.keys.data() + row * dim_;
    float* scaled = scaled_.data() + row * dim_;
    float* error = errors_.data() + row * dim_;
    for (size_t i = 0; i < dim_; ++i) scaled[i] = std::abs(keys[i] * factors_[i]);
    for (size_t part = 0; part < parts_; ++part) {
      const size_t first = part * codec_.block;
      const float amax = *std::max_element(scaled + first, scaled + first + codec_.block);
      amaxes_[row * parts_ + part] = amax;
      scales_[row * parts_ + part] = codec_.scale(amax);
      const Part codes(codec_, scales_[row * parts_ + part]);
      for (size_t i = first; i < first + codec_.block; ++i) error[i] = error_of(codes, row, i);
    }
    for (size_t i = 0; i < dim_; ++i) sums_[window * dim_ + i] += double{error[i]};
    float* weighed = weighed_.data() + row * dim_;
    std::fill(weighed, weighed + dim_, 0.0f);
    for (size_t j = 0; j < dim_; ++j) add_moment(j, error[j], weighed);
  }

  void add_moment(size_t channel, float times, float* to) const {
    const float* moment = sample_.moment.data() + channel * dim_;
    for (size_t i = 0; i < dim_; ++i) to[i] += moment[i] * times;
  }

  void weigh_sums() {
    for (size_t window = 0; window < sample_.ends.size(); ++window) {
      weigh(std::span(sums_).subspan(window * dim_, dim_), weighed_sums_.data() + window * dim_);
    }
  }

  void weigh(std::span<const double> sums, double* to) const {
    std::fill(to, to + dim_, 0.0);
    for (size_t j = 0; j < dim_; ++j) {
      if (sums[j] == 0) continue;
      const float* moment = sample_.moment.data() + j * dim_;
      for (size_t i = 0; i < dim_; ++i) to[i] += double{moment[i]} * sums[j];
    }
  }

  // Finds the parts of a row that the group touches, and how large their other channels are.
  void focus(size_t group) {
    if (focus_ == group) return;
    focus_ = group;
    touched_.clear();
    for (const int64_t each : groups_[group]) {
      const auto channel = static_cast<size_t>(each);
      const size_t part = channel / codec_.block;
      const auto at = std::find_if(touched_.begin(), touched_.end(),
                                   [&](const TouchedPart& known) { return known.part == part; });
      if (at == touched_.end()) {
        touched_.push_back({part, {channel}});
      } else {
        at->channels.push_back(channel);
      }
    }
    others_.resize(sample_.rows() * touched_.size());
    for (size_t row = 0; row < sample_.rows(); ++row) {
      for (size_t t = 0; t < touched_.size(); ++t) {
        others_[row * touched_.size() + t] = largest_of_others(row, touched_[t]);
      }
    }
  }

  // The largest magnitude in a part of a row outside the touched channels.
  float largest_of_others(size_t row, const TouchedPart& touched) const {
    const float* scaled = scaled_.data() + row * dim_;
    const float amax = amaxes_[row * parts_ + touched.part];
    const auto smaller = [&](size_t channel) { return scaled[channel] < amax; };
    if (std::all_of(touched.channels.begin(), touched.channels.end(), smaller)) return amax;
    float most = 0;
    for (size_t i = 0; i < codec_.block; ++i) {
      const size_t channel = touched.part * codec_.block + i;
      const bool inside = std::find(touched.channels.begin(), touched.channels.end(), channel) !=
                          touched.channels.end();
      if (!inside) most = std::max(most, scaled[channel]);
    }
    return most;
  }

  // The largest magnitude of a touched part with the current factors.
  float amax_of(size_t row, size_t t) const {
    float amax = others_[row * touched_.size() + t];
    for (const size_t channel : touched_[t].channels) {
      amax = std::max(amax, std::abs(sample_.keys[row * dim_ + channel] * factors_[channel]));
    }
    return amax;
  }

  // Sets changes_ to the effect of the new factors_ on a row, for the group in focus.
  void find_changes(size_t row) {
    changes_.clear();
    const float* old = errors_.data() + row * dim_;
    for (size_t t = 0; t < touched_.size(); ++t) {
      const auto scale = codec_.scale(amax_of(row, t));
      const Part codes(codec_, scale);
      const auto add = [&](size_t channel) {
        const float error = error_of(codes, row, channel);
        if (error != old[channel]) changes_.push_back({channel, error, error - old[channel]});
      };
      if (scale == scales_[row * parts_ + touched_[t].part]) {
        for (const size_t channel : touched_[t].channels) add(channel);
      } else {
        const size_t first = touched_[t].part * codec_.block;
        for (size_t i = first; i < first + codec_.block; ++i) add(i);
      }
    }
  }

  // Makes changes_ of a row part of the state.
  void take_changes(size_t row, size_t window) {
    for (size_t t = 0; t < touched_.size(); ++t) {
      const float amax = amax_of(row, t);
      amaxes_[row * parts_ + touched_[t].part] = amax;
      scales_[row * parts_ + touched_[t].part] = codec_.scale(amax);
      for (const size_t channel : touched_[t].channels) {
        scaled_[row * dim_ + channel] =
            std::abs(sample_.keys[row * dim_ + channel] * factors_[channel]);
      }
    }
    for (const Change& each : changes_) {
      errors_[row * dim_ + each.channel] = each.error;
      sums_[window * dim_ + each.channel] += double{each.moved};
      add_moment(each.channel, each.moved, weighed_.data() + row * dim_);
    }
  }

  // The change of the row's e' M e through changes_: d' (2 M e + M d). If a scale of the row
  // changes, most channels do, and whole rows of M are added up.
  double gain_of(size_t row) {
    const float* weighed = weighed_.data() + row * dim_;
    double gain = 0;
    if (changes_.size() * kSparse > dim_) {
      std::fill(product_.begin(), product_.end(), 0.0f);
      for (const Change& each : changes_) add_moment(each.channel, each.moved, product_.data());
      for (const Change& each : changes_) {
        gain += double{each.moved} * double{2 * weighed[each.channel] + product_[each.channel]};
      }
      return gain;
    }
    for (const Change& a : changes_) {
      const float* moment = sample_.moment.data() + a.channel * dim_;
      float sum = 2 * weighed[a.channel];
      for (const Change& b : changes_) sum += moment[b.channel] * b.moved;
      gain += double{a.moved} * double{sum};
    }
    return gain;
  }

  // The change of the part of a window that belongs to the mean error, if its sums move.
  double centre_gain(size_t window, std::span<const double> moved) {
    if (rows_of(window) == 0) return 0;
    moved_weighed_.resize(dim_);
    weigh(moved, moved_weighed_.data());
    const double* weighed = weighed_sums_.data() + window * dim_;
    double gain = 0;
    for (size_t i = 0; i < dim_; ++i) gain += moved[i] * (2 * weighed[i] + moved_weighed_[i]);
    return gain / static_cast<double>(rows_of(window));
  }

  const HeadSample& sample_;
  const ChannelGroups& groups_;
  Codec codec_;
  size_t dim_, parts_;
  Exponents exponents_;                        // [groups]
  std::vector<float> factors_;                 // [dim]
  std::vector<float> inverse_;                 // [dim]: 1 / factors_
  std::vector<float> product_;                 // [dim]
  std::vector<float> scaled_;                  // [rows, dim]: magnitudes of K times factors_
  std::vector<float> amaxes_;                  // [rows, parts]: the largest of scaled_
  std::vector<typename Codec::Scale> scales_;  // [rows, parts]
  std::vector<float> errors_;                  // [rows, dim]
  std::vector<float> weighed_;                 // [rows, dim]: M times the error
  std::vector<double> sums_;                   // [windows, dim]: sums of errors
  std::vector<double> weighed_sums_;           // [windows, dim]: M times the sums
  std::vector<double> moved_weighed_;          // [dim]
  size_t focus_ = 0;                           // the group of touched_ and others_, or none
  std::vector<TouchedPart> touched_;
  std::vector<float> others_;  // [rows, touched]: magnitude of channels outside the group
  std::vector<Change> changes_;
  double value_ = 0;
};

}  // namespace

std::unique_ptr<KeyError> make_key_error(const HeadSample& sample, const ChannelGroups& groups,
                                         KvFormat format, float stored) {
  const auto dim = static_cast<size_t>(sample.dim);
  if (format == KvFormat::nvfp4) {
    const Nvfp4Keys codec{static_cast<size_t>(kNvfp4Block), stored};
    return std::make_unique<CodecKeyError<Nvfp4Keys>>(sample, groups, codec);
  }
  FP8KV_ASSERT(format == KvFormat::int8_per_token_head);
  return std::make_unique<CodecKeyError<Int8Keys>>(sample, groups, Int8Keys{dim});
}

}  // namespace fp8kv
