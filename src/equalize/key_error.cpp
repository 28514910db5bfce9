#include "equalize/key_error.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/kv_rows.h"

namespace fp8kv {
namespace {

// With more than one changed channel in so many, adding whole rows of M is faster.
constexpr size_t kSparse = 8;

}  // namespace

KeyError::KeyError(const HeadSample& sample, const ChannelGroups& groups, KvFormat format,
                   float stored)
    : sample_(sample),
      groups_(groups),
      row_{format, static_cast<int32_t>(sample.dim), 0},
      stored_(stored),
      dim_(static_cast<size_t>(sample.dim)),
      factors_(dim_),
      inverse_(dim_),
      product_(dim_),
      scaled_(dim_),
      bytes_(static_cast<size_t>(row_.bytes())),
      errors_(sample.keys.size()),
      weighed_(sample.keys.size()),
      sums_(sample.ends.size() * dim_) {
  FP8KV_ASSERT(!kv_spec(format).in_elements() && !kv_spec(format).rotated);
  set(Exponents(groups.size()));
}

// Encodes `parts` of the row into bytes_, with the current factors.
void KeyError::encode(size_t row, std::span<const size_t> parts) {
  const float* keys = sample_.keys.data() + row * dim_;
  for (size_t i = 0; i < dim_; ++i) scaled_[i] = keys[i] * factors_[i];
  const auto value = [&](int32_t i) { return scaled_[static_cast<size_t>(i)]; };
  for (const size_t part : parts) {
    encode_part(row_, static_cast<int32_t>(part), value, stored_, bytes_.data());
  }
}

void KeyError::set(const Exponents& exponents) {
  exponents_ = exponents;
  for (size_t g = 0; g < groups_.size(); ++g) set_factors(g, exponents[g]);
  refresh();
}

void KeyError::set_factors(size_t group, int exponent) {
  for (const int64_t channel : groups_[group]) {
    factors_[static_cast<size_t>(channel)] = std::ldexp(1.0f, exponent);
    inverse_[static_cast<size_t>(channel)] = std::ldexp(1.0f, -exponent);
  }
}

// Recomputes everything, so that rounding errors of many small changes do not add up.
void KeyError::refresh() {
  std::vector<size_t> parts(static_cast<size_t>(row_.parts()));
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = i;
  const float stored = kv_spec(row_.format).stored_scale ? stored_ : 1.0f;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  size_t window = 0;
  for (size_t row = 0; row < sample_.rows(); ++row) {
    while (row >= sample_.ends[window]) ++window;
    encode(row, parts);
    const float* keys = sample_.keys.data() + row * dim_;
    float* error = errors(row);
    for (size_t i = 0; i < dim_; ++i) {
      const float back = row_value(row_, bytes_.data(), static_cast<int32_t>(i)) * stored;
      error[i] = back * inverse_[i] - keys[i];
      sums_[window * dim_ + i] += double{error[i]};
    }
    float* to = weighed(row);
    std::fill(to, to + dim_, 0.0f);
    for (size_t j = 0; j < dim_; ++j) {
      const float* moment = sample_.moment.data() + j * dim_;
      for (size_t i = 0; i < dim_; ++i) to[i] += moment[i] * error[j];
    }
  }
  value_ = 0;
  for (const double each : by_window()) value_ += each;
}

size_t KeyError::rows_of(size_t window) const {
  return sample_.ends[window] - (window == 0 ? 0 : sample_.ends[window - 1]);
}

double KeyError::squared(std::span<const double> sums) const {
  double all = 0;
  for (size_t j = 0; j < dim_; ++j) {
    const float* moment = sample_.moment.data() + j * dim_;
    double row = 0;
    for (size_t i = 0; i < dim_; ++i) row += double{moment[i]} * sums[i];
    all += row * sums[j];
  }
  return all;
}

// The part of a window's sum that belongs to the mean error.
double KeyError::centre(size_t window, std::span<const double> sums) const {
  const size_t rows = rows_of(window);
  return rows == 0 ? 0 : squared(sums) / static_cast<double>(rows);
}

std::vector<double> KeyError::by_window() const {
  std::vector<double> values;
  size_t row = 0;
  for (size_t window = 0; window < sample_.ends.size(); ++window) {
    double sum = 0;
    for (; row < sample_.ends[window]; ++row) {
      const float* error = errors_.data() + row * dim_;
      const float* to = weighed_.data() + row * dim_;
      for (size_t i = 0; i < dim_; ++i) sum += double{error[i]} * double{to[i]};
    }
    values.push_back(sum - centre(window, std::span(sums_).subspan(window * dim_, dim_)));
  }
  return values;
}

void KeyError::find_touched(size_t group) {
  const auto block = static_cast<size_t>(row_.block());
  parts_.clear();
  touched_.clear();
  for (const int64_t channel : groups_[group]) {
    const size_t part = static_cast<size_t>(channel) / block;
    if (std::find(parts_.begin(), parts_.end(), part) != parts_.end()) continue;
    parts_.push_back(part);
    for (size_t i = part * block; i < (part + 1) * block; ++i) touched_.push_back(i);
  }
}

// Sets changes_ to the effect of the new factors_ on the errors of a row, in the touched parts.
void KeyError::changes_of(size_t row) {
  const float stored = kv_spec(row_.format).stored_scale ? stored_ : 1.0f;
  encode(row, parts_);
  const float* keys = sample_.keys.data() + row * dim_;
  const float* error = errors(row);
  changes_.clear();
  for (const size_t i : touched_) {
    const float back = row_value(row_, bytes_.data(), static_cast<int32_t>(i)) * stored;
    const float made = back * inverse_[i] - keys[i];
    if (made != error[i]) changes_.push_back({i, made - error[i]});
  }
}

// The change of the row's e' M e through changes_: d' (2 M e + M d). If a scale of the row changes,
// most channels do, and whole rows of M are added up.
double KeyError::gain_of(size_t row) {
  const float* to = weighed(row);
  double gain = 0;
  if (changes_.size() * kSparse > dim_) {
    std::fill(product_.begin(), product_.end(), 0.0f);
    for (const Change& each : changes_) {
      const float* moment = sample_.moment.data() + each.channel * dim_;
      for (size_t i = 0; i < dim_; ++i) product_[i] += moment[i] * each.error;
    }
    for (const Change& each : changes_) {
      gain += double{each.error} * double{2 * to[each.channel] + product_[each.channel]};
    }
    return gain;
  }
  for (const Change& a : changes_) {
    const float* moment = sample_.moment.data() + a.channel * dim_;
    float sum = 2 * to[a.channel];
    for (const Change& b : changes_) sum += moment[b.channel] * b.error;
    gain += double{a.error} * double{sum};
  }
  return gain;
}

double KeyError::value_with(size_t group, int exponent) {
  find_touched(group);
  set_factors(group, exponent);
  double value = value_;
  std::vector<double> sums(dim_);
  size_t row = 0;
  for (size_t window = 0; window < sample_.ends.size(); ++window) {
    const auto old = std::span(sums_).subspan(window * dim_, dim_);
    std::copy(old.begin(), old.end(), sums.begin());
    for (; row < sample_.ends[window]; ++row) {
      changes_of(row);
      value += gain_of(row);
      for (const Change& each : changes_) sums[each.channel] += double{each.error};
    }
    value += centre(window, old) - centre(window, sums);
  }
  set_factors(group, exponents_[group]);
  return value;
}

void KeyError::change(size_t group, int exponent) {
  exponents_[group] = exponent;
  set(Exponents(exponents_));
}

}  // namespace fp8kv
