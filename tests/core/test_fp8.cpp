// Compares the codecs with a slow, plain codec by the tables of the specification. If NVIDIA's
// header is installed, compares with its codec too.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#ifdef FP8KV_HAVE_CUDA_FP8
#include <cuda_fp8.h>
#endif
#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/text.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

// The formats as the specifications define them, written again to share no code with the codec.
struct SlowFormat {
  const char* name;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool fnuz;
  bool infinities;
  int max_code;
};

constexpr SlowFormat kSlowFormats[] = {
    {"e4m3fn", 4, 3, 7, false, false, 0x7E},
    {"e4m3fnuz", 4, 3, 8, true, false, 0x7F},
    {"e5m2", 5, 2, 15, false, true, 0x7B},
    {"e5m2fnuz", 5, 2, 16, true, false, 0x7F},
};

class SlowCodec {
 public:
  explicit SlowCodec(const SlowFormat& format) : format_(format) {
    for (int code = 0; code <= format.max_code; ++code) magnitudes_.push_back(magnitude(code));
  }

  const SlowFormat& format() const { return format_; }
  const std::vector<double>& magnitudes() const { return magnitudes_; }

  double decode(int byte) const {
    const double sign = byte & 0x80 ? -1.0 : 1.0;
    const int code = byte & 0x7F;
    if (format_.fnuz && byte == 0x80) return std::numeric_limits<double>::quiet_NaN();
    if (code <= format_.max_code) return sign * magnitude(code);
    if (format_.infinities && code == 0x7C) return sign * std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }

  // The nearest code; -1 stands for any NaN.
  int encode(float x) const {
    if (std::isnan(x)) return -1;
    const int sign = std::signbit(x) ? 0x80 : 0;
    const double wanted = std::fabs(static_cast<double>(x));
    const auto above = std::upper_bound(magnitudes_.begin(), magnitudes_.end(), wanted);
    int code = static_cast<int>(above - magnitudes_.begin()) - 1;
    if (above != magnitudes_.end()) {
      const double middle = (magnitudes_[static_cast<size_t>(code)] + *above) / 2;
      if (wanted > middle || (wanted == middle && code % 2 == 1)) ++code;
    }
    return format_.fnuz && code == 0 ? 0 : sign | code;
  }

 private:
  double magnitude(int code) const {
    const int exponent = code >> format_.mantissa_bits;
    const double fraction =
        std::ldexp(code & ((1 << format_.mantissa_bits) - 1), -format_.mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - format_.bias)
                         : std::ldexp(1 + fraction, exponent - format_.bias);
  }

  SlowFormat format_;
  std::vector<double> magnitudes_;  // of codes 0 ... max_code, ascending
};

// Calls `check(codec under test, slow codec)` for all four formats.
template <typename Check>
void for_each_format(Check&& check) {
  check.template operator()<Fp8Format::e4m3fn>(SlowCodec(kSlowFormats[0]));
  check.template operator()<Fp8Format::e4m3fnuz>(SlowCodec(kSlowFormats[1]));
  check.template operator()<Fp8Format::e5m2>(SlowCodec(kSlowFormats[2]));
  check.template operator()<Fp8Format::e5m2fnuz>(SlowCodec(kSlowFormats[3]));
}

bool same_value(float a, double b) {
  if (std::isnan(b)) return std::isnan(a);
  return static_cast<double>(a) == b && std::signbit(a) == std::signbit(b);
}

// "" if the codec and the slow codec give the same code for x.
template <Fp8Format F>
std::string difference(float x, const SlowCodec& slow) {
  const uint8_t byte = fp8_encode<F>(x);
  const int expected = slow.encode(x);
  if (expected >= 0 ? byte == expected : std::isnan(slow.decode(byte))) return "";
  return cat(slow.format().name, ": bits ", float_bits(x), " encode to ", int{byte}, ", expected ",
             expected);
}

TEST_CASE("fp8: every code decodes to what the specification says") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    for (int byte = 0; byte < 256; ++byte) {
      INFO(slow.format().name, " code ", byte);
      CHECK(same_value(fp8_decode<F>(static_cast<uint8_t>(byte)), slow.decode(byte)));
    }
  });
}

TEST_CASE("fp8: the limits in the spec table are those of the codes") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    constexpr Fp8Spec spec = fp8_spec(F);
    CHECK(spec.max_code == slow.format().max_code);
    CHECK(spec.max == slow.magnitudes().back());
    CHECK(spec.min_subnormal == slow.magnitudes()[1]);
    CHECK(spec.min_normal == slow.magnitudes()[size_t{1} << slow.format().mantissa_bits]);
  });
  CHECK(fp8_spec(Fp8Format::e4m3fn).max == 448.0f);
  CHECK(fp8_spec(Fp8Format::e4m3fnuz).max == 240.0f);
  CHECK(fp8_spec(Fp8Format::e5m2).max == 57344.0f);
  CHECK(fp8_spec(Fp8Format::e5m2fnuz).max == 57344.0f);
}

TEST_CASE("fp8: every finite code encodes to itself") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    for (int byte = 0; byte < 256; ++byte) {
      if (!std::isfinite(slow.decode(byte))) continue;
      INFO(slow.format().name, " code ", byte);
      CHECK(int{fp8_encode<F>(static_cast<float>(slow.decode(byte)))} == byte);
    }
  });
}

TEST_CASE("fp8: every bf16 and f16 value rounds to the nearest code") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    std::string first;
    for (uint32_t code = 0; code < 0x10000 && first.empty(); ++code) {
      first = difference<F>(bf16_to_float(static_cast<uint16_t>(code)), slow);
      if (first.empty()) first = difference<F>(f16_to_float(static_cast<uint16_t>(code)), slow);
    }
    CHECK(first == "");
  });
}

TEST_CASE("fp8: ties go to even, and the floats beside a boundary to their side") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    std::vector<double> boundaries = slow.magnitudes();
    for (size_t i = 1; i < slow.magnitudes().size(); ++i) {
      boundaries.push_back((slow.magnitudes()[i - 1] + slow.magnitudes()[i]) / 2);
    }
    // The place of the next code if there were one. Saturation must not depend on it.
    const double ulp = slow.magnitudes().back() - slow.magnitudes().rbegin()[1];
    for (const double steps : {0.5, 1.0}) {
      boundaries.push_back(slow.magnitudes().back() + steps * ulp);
    }
    for (const double boundary : boundaries) {
      const auto at = static_cast<float>(boundary);
      for (const float x : {at, std::nextafterf(at, 0.0f), std::nextafterf(at, INFINITY)}) {
        CHECK(difference<F>(x, slow) == "");
        CHECK(difference<F>(-x, slow) == "");
      }
    }
  });
}

TEST_CASE("fp8: random floats of every exponent round to the nearest code") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    Rng rng(1);
    std::string first;
    for (int i = 0; i < 2'000'000 && first.empty(); ++i) {
      first = difference<F>(float_from_bits(static_cast<uint32_t>(rng.next())), slow);
    }
    CHECK(first == "");
  });
}

TEST_CASE("fp8: overflow and infinity saturate, NaN stays NaN, zero keeps its sign but in fnuz") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    INFO(slow.format().name);
    const int max_code = slow.format().max_code;
    const float largest = std::numeric_limits<float>::max();
    for (const float x : {largest, std::numeric_limits<float>::infinity()}) {
      CHECK(int{fp8_encode<F>(x)} == max_code);
      CHECK(int{fp8_encode<F>(-x)} == (0x80 | max_code));
    }
    const float quiet = std::numeric_limits<float>::quiet_NaN();
    const float signalling = float_from_bits(0x7F800001u);
    for (const float x : {quiet, -quiet, signalling}) {
      CHECK(std::isnan(fp8_decode<F>(fp8_encode<F>(x))));
    }
    const int negative_zero = slow.format().fnuz ? 0 : 0x80;
    CHECK(int{fp8_encode<F>(0.0f)} == 0);
    CHECK(int{fp8_encode<F>(-0.0f)} == negative_zero);
    CHECK(int{fp8_encode<F>(-std::numeric_limits<float>::denorm_min())} == negative_zero);
  });
}

TEST_CASE("fp8: encoding is monotone") {
  for_each_format([]<Fp8Format F>(const SlowCodec& slow) {
    // Positive floats in the order of their bits. The prime step samples every binade densely.
    float previous = 0;
    for (uint32_t bits = 0; bits < 0x7F800000u; bits += 1009) {
      const float value = fp8_decode<F>(fp8_encode<F>(float_from_bits(bits)));
      if (value < previous) FAIL(slow.format().name, ": falls at bits ", bits);
      previous = value;
    }
    CHECK(previous == fp8_spec(F).max);
  });
}

// Counts the bytes that are finite in both formats. Each is worth twice as much in the fn format.
template <Fp8Format Fn, Fp8Format Fnuz>
int count_doubled() {
  int count = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const float fn = fp8_decode<Fn>(static_cast<uint8_t>(byte));
    const float fnuz = fp8_decode<Fnuz>(static_cast<uint8_t>(byte));
    if (!std::isfinite(fn) || !std::isfinite(fnuz)) continue;
    CHECK(fn == 2 * fnuz);
    ++count;
  }
  return count;
}

TEST_CASE("fp8: an fn byte is worth exactly twice its fnuz twin") {
  // All 256 bytes except -0 (NaN in fnuz) and the NaN and infinity codes of fn, 2 or 8.
  CHECK(count_doubled<Fp8Format::e4m3fn, Fp8Format::e4m3fnuz>() == 253);
  CHECK(count_doubled<Fp8Format::e5m2, Fp8Format::e5m2fnuz>() == 247);
}

#ifdef FP8KV_HAVE_CUDA_FP8

template <Fp8Format F>
uint64_t differences_from_cuda(__nv_fp8_interpretation_t interpretation) {
  uint64_t differing = 0;
  // Tries 16.7 million floats over all signs and exponents. 257 is prime, so every low bit changes.
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += 257) {
    const float x = float_from_bits(static_cast<uint32_t>(bits));
    const uint8_t ours = fp8_encode<F>(x);
    const uint8_t theirs = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, interpretation);
    // NVIDIA's NaN has no sign.
    if (std::isnan(x) ? (ours & 0x7F) != (theirs & 0x7F) : ours != theirs) ++differing;
  }
  return differing;
}

TEST_CASE("fp8: equals the conversion of cuda_fp8.h, saturating") {
  CHECK(differences_from_cuda<Fp8Format::e4m3fn>(__NV_E4M3) == 0);
  CHECK(differences_from_cuda<Fp8Format::e5m2>(__NV_E5M2) == 0);
}

#else

TEST_CASE("fp8: equals the conversion of cuda_fp8.h, saturating") {
  test::skip("cuda_fp8.h is not installed");
}

#endif

}  // namespace
}  // namespace fp8kv
