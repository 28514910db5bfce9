#include "equalize/scaled_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "core/half.h"

namespace fp8kv {
namespace {

float load(DType dtype, const std::byte* from) {
  uint16_t half = 0;
  float value = 0;
  if (dtype == DType::f32) {
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::memcpy(&half, from, sizeof half);
  return dtype == DType::f16 ? f16_to_float(half) : bf16_to_float(half);
}

void store(DType dtype, float value, char* to) {
  if (dtype == DType::f32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const uint16_t half = dtype == DType::f16 ? f16_from_float(value) : bf16_from_float(value);
  std::memcpy(to, &half, sizeof half);
}

float rounded(DType dtype, float value) {
  char bytes[sizeof(float)];
  store(dtype, value, bytes);
  return load(dtype, reinterpret_cast<const std::byte*>(bytes));
}

struct NormalRange {
  double least, most;
};

NormalRange normal_range(DType dtype) {
  if (dtype == DType::f16) return {0x1p-14, 65504.0};
  if (dtype == DType::bf16) return {0x1p-126, 0x1.FEp127};
  return {0x1p-126, 0x1.FFFFFEp127};
}

// The new stored value of a weight w, for models that compute with 1 + w.
float scaled_plus_one(DType dtype, float weight, int exponent) {
  return rounded(dtype, static_cast<float>(std::ldexp(1.0 + double{weight}, exponent) - 1.0));
}

bool is_exact_plus_one(DType dtype, float weight, int exponent) {
  const float made = scaled_plus_one(dtype, weight, exponent);
  return 1.0f + made == std::ldexp(1.0f + weight, exponent);
}

// The positions of the elements in one row of a tensor.
class RowPlaces {
 public:
  RowPlaces(const TensorEntry& entry, const FoldedTensor& tensor) {
    if (!tensor.is_matrix) return;
    count_ = tensor.turned ? entry.shape[0] : entry.shape[1];
    row_step_ = tensor.turned ? 1 : entry.shape[1];
    step_ = tensor.turned ? entry.shape[1] : 1;
  }

  int64_t count() const { return count_; }
  size_t at(int64_t row, int64_t i) const {
    return static_cast<size_t>(row * row_step_ + i * step_);
  }

 private:
  int64_t count_ = 1;
  int64_t row_step_ = 1;
  int64_t step_ = 1;
};

std::vector<size_t> group_of_channel(const ChannelGroups& groups) {
  std::vector<size_t> of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int64_t channel : groups[g]) {
      of.resize(std::max(of.size(), static_cast<size_t>(channel) + 1));
      of[static_cast<size_t>(channel)] = g;
    }
  }
  return of;
}

// Removes exponents from `allowed` that are not exact for one row.
class RowCheck {
 public:
  RowCheck(DType dtype, bool plus_one) : dtype_(dtype), plus_one_(plus_one) {}

  void add(float weight) {
    if (plus_one_) return weights_.push_back(weight);
    const double magnitude = std::abs(double{weight});
    if (magnitude == 0) return;
    least_ = std::min(least_, magnitude);
    most_ = std::max(most_, magnitude);
  }

  void apply(int sign, ExponentSet& allowed) const {
    for (int e = -kMostExponent; e <= kMostExponent; ++e) {
      if (e != 0 && !is_exact(e * sign)) allowed.remove(e);
    }
  }

 private:
  bool is_exact(int exponent) const {
    const auto exact = [&](float weight) { return is_exact_plus_one(dtype_, weight, exponent); };
    if (plus_one_) return std::all_of(weights_.begin(), weights_.end(), exact);
    if (most_ == 0) return true;
    const NormalRange range = normal_range(dtype_);
    return std::ldexp(least_, exponent) >= range.least && std::ldexp(most_, exponent) <= range.most;
  }

  DType dtype_;
  bool plus_one_;
  std::vector<float> weights_;
  double least_ = HUGE_VAL, most_ = 0;
};

}  // namespace

AllowedExponents exact_exponents(const Checkpoint& checkpoint,
                                 std::span<const FoldedTensor> tensors, int64_t units,
                                 const ChannelGroups& groups) {
  AllowedExponents allowed(static_cast<size_t>(units), std::vector<ExponentSet>(groups.size()));
  const std::vector<size_t> group_of = group_of_channel(groups);
  for (const FoldedTensor& tensor : tensors) {
    const TensorEntry& entry = checkpoint.at(tensor.name);
    const MappedTensor mapped = checkpoint.map(tensor.name);
    const size_t size = dtype_bytes(entry.dtype);
    const RowPlaces places(entry, tensor);
    for (const FoldedRow& row : tensor.rows) {
      RowCheck check(entry.dtype, tensor.plus_one);
      for (int64_t i = 0; i < places.count(); ++i) {
        check.add(load(entry.dtype, mapped.view.data + places.at(row.row, i) * size));
      }
      check.apply(
          row.sign,
          allowed[static_cast<size_t>(row.unit)][group_of[static_cast<size_t>(row.channel)]]);
    }
  }
  return allowed;
}

std::string scaled_tensor(const Checkpoint& checkpoint, const FoldedTensor& tensor,
                          const LayerExponents& exponents, const ChannelGroups& groups) {
  const TensorEntry& entry = checkpoint.at(tensor.name);
  std::string bytes = checkpoint.read(tensor.name);
  const std::vector<size_t> group_of = group_of_channel(groups);
  const size_t size = dtype_bytes(entry.dtype);
  const RowPlaces places(entry, tensor);
  for (const FoldedRow& row : tensor.rows) {
    const Exponents& of_unit = exponents[static_cast<size_t>(row.unit)];
    const int exponent = row.sign * of_unit[group_of[static_cast<size_t>(row.channel)]];
    if (exponent == 0) continue;
    for (int64_t i = 0; i < places.count(); ++i) {
      char* to = bytes.data() + places.at(row.row, i) * size;
      const float weight = load(entry.dtype, reinterpret_cast<const std::byte*>(to));
      store(entry.dtype,
            tensor.plus_one ? scaled_plus_one(entry.dtype, weight, exponent)
                            : std::ldexp(weight, exponent),
            to);
    }
  }
  return bytes;
}

}  // namespace fp8kv
