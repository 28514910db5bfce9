// Cache arithmetic of other runtimes' kernels: attention in FP8, and rounding towards zero.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/numbers/fp8.h"
#include "core/numbers/half.h"
#include "support/backends/compare.h"
#include "support/backends/format_scene.h"

namespace fp8kv {
namespace {

using test::FormatScene;

// All finite non-negative numbers of E4M3FN, in rising order.
std::vector<double> e4m3_numbers() {
  std::vector<double> numbers;
  for (int code = 0; code < 0x7F; ++code) {
    numbers.push_back(double{fp8_decode<Fp8Format::e4m3fn>(static_cast<uint8_t>(code))});
  }
  return numbers;
}

// The E4M3 number nearest to x. Sets `clear` to false if x is almost halfway between two numbers,
// within a thousandth of their distance.
double nearest(double x, bool& clear) {
  static const std::vector<double> kNumbers = e4m3_numbers();
  const double magnitude = std::abs(x);
  const auto above = std::lower_bound(kNumbers.begin(), kNumbers.end(), magnitude);
  if (above == kNumbers.end()) return std::copysign(kNumbers.back(), x);
  if (above == kNumbers.begin()) return std::copysign(*above, x);
  const double low = *(above - 1), high = *above, middle = (low + high) / 2;
  clear = clear && std::abs(magnitude - middle) > 1e-3 * (high - low);
  return std::copysign(magnitude < middle ? low : high, x);
}

// Attention in double over a cache of E4M3, with Q and the weights rounded. Gives NaN for rows with
// a number halfway between two codes, which f32 may round to either.
std::vector<double> fp8_attention(const FormatScene& s) {
  const auto rounded = [&](std::vector<float> all) {
    for (float& x : all) x = s.round_to == DType::bf16 ? bf16_to_float(bf16_from_float(x)) : x;
    return all;
  };
  const std::vector<float> q = rounded(s.q());
  const auto cached = [&](const std::vector<float>& all, float scale) {
    std::vector<double> values;
    for (const float x : rounded(all)) {
      const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(x / scale);
      values.push_back(double{fp8_decode<Fp8Format::e4m3fn>(code)} * double{scale});
    }
    return values;
  };
  const std::vector<double> k = cached(s.k(), s.kKScale), v = cached(s.v(), s.kVScale);
  std::vector<double> out;
  for (int64_t row = 0; row < s.tokens; ++row) {
    for (int64_t head = 0; head < s.n_heads; ++head) {
      const int64_t of_kv = head * s.n_kv_heads / s.n_heads;
      const auto at = [&](int64_t token, int64_t heads, int64_t of, int64_t d) {
        return static_cast<size_t>((token * heads + of) * s.head_dim + d);
      };
      bool clear = true;
      std::vector<double> weights, sums(static_cast<size_t>(s.head_dim));
      std::vector<double> query;
      for (int64_t d = 0; d < s.head_dim; ++d) {
        const double scaled = double{q[at(row, s.n_heads, head, d)] / s.q_scale};
        query.push_back(nearest(scaled, clear) * double{s.q_scale});
      }
      double most = -INFINITY, total = 0;
      for (int64_t t = 0; t <= row; ++t) {
        double score = 0;
        for (int64_t d = 0; d < s.head_dim; ++d) {
          score += query[static_cast<size_t>(d)] * k[at(t, s.n_kv_heads, of_kv, d)];
        }
        weights.push_back(score * double{s.kScoreScale});
        most = std::max(most, weights.back());
      }
      for (double& weight : weights) {
        weight = std::exp(weight - most);
        total += weight;
        weight = nearest(256 * weight, clear) / 256;
      }
      for (int64_t t = 0; t <= row; ++t) {
        for (int64_t d = 0; d < s.head_dim; ++d) {
          sums[static_cast<size_t>(d)] +=
              weights[static_cast<size_t>(t)] / total * v[at(t, s.n_kv_heads, of_kv, d)];
        }
      }
      for (double& sum : sums) out.push_back(clear ? sum : NAN);
    }
  }
  return out;
}

TEST_CASE("cpu cache arithmetic: attention in FP8 rounds Q and the weights to E4M3") {
  for (const DType rounded : {DType::f32, DType::bf16}) {
    const FormatScene s{.cache = KvFormat::e4m3fn, .round_to = rounded, .q_scale = 0.05f};
    const std::vector<double> expected = fp8_attention(s);
    const double allowed = s.allowed_error();
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(std::string(cpu_isa_name(isa)));
      const std::vector<float> found = run_format(*make_cpu_backend(2, isa), s).attended;
      size_t compared = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(expected[i])) continue;
        ++compared;
        REQUIRE(std::abs(double{found[i]} - expected[i]) <= allowed);
      }
      CHECK(compared > expected.size() / 2);
    }
  }
}

TEST_CASE("cpu cache arithmetic: the same bits for any number of threads") {
  const FormatScene s{.cache = KvFormat::e4m3fn, .tokens = 600, .q_scale = 0.05f};
  const test::FormatOutcome one = run_format(*make_cpu_backend(1), s);
  CHECK(run_format(*make_cpu_backend(3), s).attended == one.attended);
}

TEST_CASE("cpu cache arithmetic: towards zero, no stored number is above what it stands for") {
  const FormatScene s{.cache = KvFormat::e4m3fn, .toward_zero = true};
  const test::FormatOutcome found = run_format(*make_cpu_backend(2), s);
  const std::vector<double> numbers = e4m3_numbers();
  const std::vector<float> k = s.k();
  size_t lower = 0;
  for (int64_t token = 0; token < s.tokens; ++token) {
    for (int64_t head = 0; head < s.n_kv_heads; ++head) {
      const int64_t place =
          (s.page(token / s.kPageSize) * s.n_kv_heads + head) * s.kPageSize + token % s.kPageSize;
      for (int64_t d = 0; d < s.head_dim; ++d) {
        const float x = k[static_cast<size_t>((token * s.n_kv_heads + head) * s.head_dim + d)];
        const double scaled = std::abs(double{x / s.kKScale});
        const uint8_t code = found.k[static_cast<size_t>(place * s.head_dim + d)];
        // The largest E4M3 number that does not exceed it.
        const auto above = std::upper_bound(numbers.begin(), numbers.end(), scaled);
        REQUIRE(std::abs(double{fp8_decode<Fp8Format::e4m3fn>(code)}) == *(above - 1));
        REQUIRE(std::signbit(fp8_decode<Fp8Format::e4m3fn>(code)) == std::signbit(x));
        bool clear = true;
        lower += std::abs(nearest(scaled, clear)) > *(above - 1);
      }
    }
  }
  CHECK(lower > 100);
}

}  // namespace
}  // namespace fp8kv
