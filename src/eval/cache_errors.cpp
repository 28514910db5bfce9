#include "eval/cache_errors.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/cache/kv_rows.h"
#include "core/numbers/hadamard.h"
#include "core/numbers/half.h"
#include "core/numbers/toward_zero.h"

namespace fp8kv {
namespace {

// A value after it went through a cache of one type.
struct Stored {
  float value;  // as read back
  bool subnormal;
  bool saturated;
  bool nonfinite;
};

template <Fp8Format F>
struct Fp8Cache {
  static constexpr Fp8Spec kSpec = fp8_spec(F);
  // The distance between codes doubles with each exponent. The midpoint half a step above the
  // largest code is a tie, which goes to the even code.
  static constexpr int kLargestExponent = kSpec.max_code >> kSpec.mantissa_bits;
  static constexpr float kHalfStep =
      kSpec.min_subnormal * static_cast<float>(uint32_t{1} << (kLargestExponent - 1)) / 2;
  static constexpr float kLimit = kSpec.max + kHalfStep;
  static constexpr bool kTieOverflows = kSpec.max_code % 2 != 0;

  float scale;
  double largest;

  explicit Fp8Cache(float scale_in)
      : scale(scale_in), largest(double{kSpec.max} * double{scale_in} * (1 + 0x1p-22)) {}

  Stored store(float x) const {
    const float quotient = x / scale;
    const float magnitude = std::abs(quotient);
    const uint8_t code = fp8_encode<F>(quotient);
    const int steps = code & 0x7F;
    return {fp8_decode<F>(code) * scale,
            steps > 0 && steps<(1 << kSpec.mantissa_bits), std::abs(double{x})> largest,
            magnitude > kLimit || (kTieOverflows && magnitude == kLimit)};
  }
};

template <typename Round>
struct FloatCache {
  float smallest_normal;
  Round round;

  Stored store(float x) const {
    const float value = round(x);
    const bool infinite = std::isinf(value);
    return {value, value != 0 && std::abs(value) < smallest_normal, infinite, infinite};
  }
};

// Calls `work` with a cache of this dtype and scale.
template <typename Work>
auto with_cache(DType dtype, float scale, const Work& work) {
  if (const auto format = fp8_format(dtype)) {
    switch (*format) {
      case Fp8Format::e4m3fn:
        return work(Fp8Cache<Fp8Format::e4m3fn>(scale));
      case Fp8Format::e4m3fnuz:
        return work(Fp8Cache<Fp8Format::e4m3fnuz>(scale));
      case Fp8Format::e5m2:
        return work(Fp8Cache<Fp8Format::e5m2>(scale));
      case Fp8Format::e5m2fnuz:
        return work(Fp8Cache<Fp8Format::e5m2fnuz>(scale));
    }
  }
  if (dtype == DType::f16) {
    return work(FloatCache{0x1p-14f, [](float x) { return f16_to_float(f16_from_float(x)); }});
  }
  if (dtype == DType::bf16) {
    return work(FloatCache{0x1p-126f, [](float x) { return bf16_to_float(bf16_from_float(x)); }});
  }
  FP8KV_ASSERT(dtype == DType::f32);
  return work(FloatCache{0x1p-126f, [](float x) { return x; }});
}

}  // namespace

void ErrorSums::add(const ErrorSums& other) {
  squared_error += other.squared_error;
  squared += other.squared;
  values += other.values;
  saturated += other.saturated;
  subnormal += other.subnormal;
  zero += other.zero;
  nonfinite_unclamped += other.nonfinite_unclamped;
}

double ErrorSums::relative_error() const {
  return squared == 0 ? 0 : std::sqrt(squared_error / squared);
}

namespace {

void add_element_errors(DType dtype, float scale, std::span<const float> x, ErrorSums& sums) {
  with_cache(dtype, scale, [&](const auto& cache) {
    for (const float value : x) {
      const Stored stored = cache.store(value);
      const double error = double{stored.value} - double{value};
      sums.squared_error += error * error;
      sums.squared += double{value} * double{value};
      sums.saturated += stored.saturated ? 1 : 0;
      sums.subnormal += stored.subnormal ? 1 : 0;
      sums.zero += stored.value == 0 && value != 0 ? 1 : 0;
      sums.nonfinite_unclamped += stored.nonfinite ? 1 : 0;
    }
  });
  sums.values += x.size();
}

// Encodes x as a row of a format that makes its own scales, and decodes it again.
std::vector<float> read_back(const KvRow& row, float scale, std::span<const float> x) {
  std::vector<float> values(x.begin(), x.end());
  const bool rotated = kv_spec(row.format).rotated;
  if (rotated) hadamard(values.data(), row.dim, false);
  std::vector<uint8_t> bytes(static_cast<size_t>(row.bytes()));
  const auto value = [&](int32_t i) { return values[static_cast<size_t>(i)]; };
  for (int32_t part = 0; part < row.parts(); ++part) {
    encode_part(row, part, value, scale, bytes.data());
  }
  const float stored = kv_spec(row.format).stored_scale ? scale : 1.0f;
  for (int32_t i = 0; i < row.dim; ++i) {
    values[static_cast<size_t>(i)] = row_value(row, bytes.data(), i) * stored;
  }
  if (!rotated) return values;
  hadamard(values.data(), row.dim, true);
  for (float& each : values) each /= static_cast<float>(hadamard_block(row.dim));
  return values;
}

}  // namespace

void add_errors(const KvRow& row, float scale, std::span<const float> x, ErrorSums& sums) {
  if (const std::optional<DType> elements = kv_elements(row.format)) {
    return add_element_errors(*elements, scale, x, sums);
  }
  const bool stored = kv_spec(row.format).stored_scale;
  const double largest =
      stored ? double{kv_range(row.format).max} * double{scale} * (1 + 0x1p-22) : HUGE_VAL;
  const std::vector<float> back = read_back(row, scale, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = double{back[i]} - double{x[i]};
    sums.squared_error += error * error;
    sums.squared += double{x[i]} * double{x[i]};
    sums.saturated += std::abs(double{x[i]}) > largest ? 1 : 0;
    sums.zero += back[i] == 0 && x[i] != 0 ? 1 : 0;
  }
  sums.values += x.size();
}

void add_errors_toward_zero(float scale, std::span<const float> x, ErrorSums& sums) {
  std::vector<float> cut(x.begin(), x.end());
  for (float& value : cut) value = e4m3_toward_zero(value, scale);
  ErrorSums of_cut, found;
  add_element_errors(DType::f8_e4m3, scale, cut, of_cut);
  add_element_errors(DType::f8_e4m3, scale, x, found);
  found.squared_error = 0;
  found.zero = 0;
  found.subnormal = of_cut.subnormal;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = double{cut[i]} - double{x[i]};
    found.squared_error += error * error;
    found.zero += cut[i] == 0 && x[i] != 0 ? 1 : 0;
  }
  sums.add(found);
}

void add_block_errors(std::span<const float> latent, ErrorSums& sums) {
  for (; !latent.empty(); latent = latent.subspan(kLatentBlock)) {
    const std::span<const float> block = latent.first(kLatentBlock);
    float amax = 0.0f;
    for (const float value : block) amax = std::max(amax, std::abs(value));
    add_element_errors(DType::f8_e4m3, latent_block_scale(amax), block, sums);
  }
}

bool reads_back_equal(DType dtype_a, float scale_a, DType dtype_b, float scale_b,
                      std::span<const float> x) {
  const float factor_a = fp8_format(dtype_a) ? scale_a : 1.0f;
  const float factor_b = fp8_format(dtype_b) ? scale_b : 1.0f;
  int exponent = 0;
  if (std::frexp(factor_a / factor_b, &exponent) != 0.5f) return false;
  return with_cache(dtype_a, scale_a, [&](const auto& a) {
    return with_cache(dtype_b, scale_b, [&](const auto& b) {
      for (const float value : x) {
        if (a.store(value).value != b.store(value).value) return false;
      }
      return true;
    });
  });
}

CacheErrors cache_errors(const std::vector<ErrorSums>& heads) {
  ErrorSums all;
  CacheErrors errors;
  for (const ErrorSums& head : heads) {
    all.add(head);
    errors.head_errors.push_back(head.relative_error());
  }
  errors.relative_error = all.relative_error();
  errors.values = all.values;
  errors.saturated = all.saturated;
  errors.subnormal = all.subnormal;
  errors.zero = all.zero;
  errors.nonfinite_unclamped = all.nonfinite_unclamped;
  return errors;
}

}  // namespace fp8kv
