#include "equalize/scaled_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "core/model/quantised_matrix.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

float load(DType dtype, const std::byte* from) {
  uint16_t half = 0;
  float value = 0;
  switch (dtype) {
    case DType::f32:
      std::memcpy(&value, from, sizeof value);
      return value;
    case DType::f8_e4m3:
      return fp8_decode<Fp8Format::e4m3fn>(static_cast<uint8_t>(*from));
    case DType::f8_e8m0:
      return e8m0_decode(static_cast<uint8_t>(*from));
    default:
      std::memcpy(&half, from, sizeof half);
      return dtype == DType::f16 ? f16_to_float(half) : bf16_to_float(half);
  }
}

void store(DType dtype, float value, char* to) {
  uint16_t half = 0;
  switch (dtype) {
    case DType::f32:
      std::memcpy(to, &value, sizeof value);
      return;
    case DType::f8_e4m3:
      *to = static_cast<char>(fp8_encode<Fp8Format::e4m3fn>(value));
      return;
    case DType::f8_e8m0:
      *to = static_cast<char>(float_bits(value) >> 23);
      return;
    default:
      half = dtype == DType::f16 ? f16_from_float(value) : bf16_from_float(value);
      std::memcpy(to, &half, sizeof half);
  }
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
  switch (dtype) {
    case DType::f16:
      return {0x1p-14, 65504.0};
    case DType::bf16:
      return {0x1p-126, 0x1.FEp127};
    case DType::f8_e4m3:
      return {0x1p-6, 448.0};
    case DType::f8_e8m0:
      return {0x1p-126, 0x1p127};
    default:
      return {0x1p-126, 0x1.FFFFFEp127};
  }
}

// A weight is a code times a scale, and codes lie between 2^-16 and 2^16. Scales in this range make
// no weight that overflows or is subnormal.
constexpr NormalRange kScaleRange = {0x1p-100, 0x1p100};

bool is_in(const NormalRange& range, double least, double most) {
  return least >= range.least && most <= range.most;
}

// The new stored value of a weight w, for models that compute with 1 + w.
float scaled_plus_one(DType dtype, float weight, int exponent) {
  return rounded(dtype, static_cast<float>(std::ldexp(1.0 + double{weight}, exponent) - 1.0));
}

bool is_exact_plus_one(DType dtype, float weight, int exponent) {
  const float made = scaled_plus_one(dtype, weight, exponent);
  return 1.0f + made == std::ldexp(1.0f + weight, exponent);
}

size_t place_of(const FoldedTensor& tensor, int64_t row, int64_t i) {
  return static_cast<size_t>(row * tensor.row_step + i * tensor.step) * dtype_bytes(tensor.dtype);
}

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
  explicit RowCheck(const FoldedTensor& tensor) : tensor_(tensor) {}

  void add(float weight) {
    if (tensor_.plus_one) return weights_.push_back(weight);
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
    const auto exact = [&](float weight) {
      return is_exact_plus_one(tensor_.dtype, weight, exponent);
    };
    if (tensor_.plus_one) return std::all_of(weights_.begin(), weights_.end(), exact);
    if (most_ == 0) return true;
    const double least = std::ldexp(least_, exponent), most = std::ldexp(most_, exponent);
    return is_in(normal_range(tensor_.dtype), least, most) &&
           (!tensor_.are_scales ||
            is_in(kScaleRange, least * tensor_.overall, most * tensor_.overall));
  }

  const FoldedTensor& tensor_;
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
    const MappedTensor mapped = checkpoint.map(tensor.name);
    for (const FoldedRow& row : tensor.rows) {
      RowCheck check(tensor);
      for (int64_t i = 0; i < tensor.count; ++i) {
        check.add(load(tensor.dtype, mapped.view.data + place_of(tensor, row.row, i)));
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
  std::string bytes = checkpoint.read(tensor.name);
  const std::vector<size_t> group_of = group_of_channel(groups);
  for (const FoldedRow& row : tensor.rows) {
    const Exponents& of_unit = exponents[static_cast<size_t>(row.unit)];
    const int exponent = row.sign * of_unit[group_of[static_cast<size_t>(row.channel)]];
    if (exponent == 0) continue;
    for (int64_t i = 0; i < tensor.count; ++i) {
      char* to = bytes.data() + place_of(tensor, row.row, i);
      const float weight = load(tensor.dtype, reinterpret_cast<const std::byte*>(to));
      store(tensor.dtype,
            tensor.plus_one ? scaled_plus_one(tensor.dtype, weight, exponent)
                            : std::ldexp(weight, exponent),
            to);
    }
  }
  return bytes;
}

}  // namespace fp8kv
