#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/cache/kv_rows.h"
#include "core/numbers/half.h"
#include "equalize/exponent_search.h"
#include "equalize/key_codecs.h"
#include "equalize/key_error.h"
#include "support/backends/cpu.h"

namespace fp8kv {
namespace {

using Windows = std::vector<size_t>;

// Holds a codec of the search to the cache's own.
template <typename Codec>
void check_codec(const Codec& codec, const KvRow& row, float stored, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(row.bytes()));
  for (const float size : {0.0f, 1e-9f, 1e-3f, 1.0f, 300.0f, 1e6f}) {
    std::vector<float> x = test::random_floats(rng, row.dim);
    for (float& each : x) each *= size;
    const auto value = [&](int32_t i) { return x[static_cast<size_t>(i)]; };
    for (int32_t part = 0; part < row.parts(); ++part) {
      encode_part(row, part, value, stored, bytes.data());
      float amax = 0;
      for (int32_t i = part * row.block(); i < (part + 1) * row.block(); ++i) {
        amax = std::max(amax, std::abs(value(i)));
      }
      const typename Codec::Part codes(codec, codec.scale(amax));
      for (int32_t i = part * row.block(); i < (part + 1) * row.block(); ++i) {
        CHECK(codes.value(value(i)) == row_value(row, bytes.data(), i) * stored);
      }
    }
  }
}

// A sample where channel i of K has values of about `sizes[i]`, with three queries per row.
HeadSample sample_of(const std::vector<float>& sizes, const Windows& ends, uint64_t seed) {
  Rng rng(seed);
  HeadSample sample{
      .dim = static_cast<int64_t>(sizes.size()), .keys = {}, .ends = ends, .moment = {}};
  const size_t dim = sizes.size();
  const std::vector<float> noise =
      test::random_floats(rng, static_cast<int64_t>(sample.rows() * dim));
  for (size_t i = 0; i < noise.size(); ++i) {
    sample.keys.push_back(bf16_to_float(bf16_from_float(noise[i] * sizes[i % dim])));
  }
  const std::vector<float> queries = test::random_floats(rng, static_cast<int64_t>(3 * dim));
  sample.moment.resize(dim * dim);
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = 0; j < dim; ++j) {
      for (size_t q = 0; q < 3; ++q) {
        sample.moment[i * dim + j] += queries[q * dim + i] * queries[q * dim + j];
      }
    }
  }
  return sample;
}

// The error by its definition, in double and without the program's codecs.
double plain_error(const HeadSample& sample, const ChannelGroups& groups,
                   const Exponents& exponents) {
  const auto dim = static_cast<size_t>(sample.dim);
  std::vector<double> factors(dim);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int64_t c : groups[g]) factors[static_cast<size_t>(c)] = std::exp2(exponents[g]);
  }
  double total = 0;
  size_t row = 0;
  for (const size_t end : sample.ends) {
    std::vector<std::vector<double>> errors;
    std::vector<double> mean(dim);
    for (; row < end; ++row) {
      std::vector<double> error(dim);
      double amax = 0;
      for (size_t i = 0; i < dim; ++i) {
        amax = std::max(amax, std::abs(sample.keys[row * dim + i] * factors[i]));
      }
      const double step = amax / 127;
      for (size_t i = 0; i < dim; ++i) {
        const double x = sample.keys[row * dim + i];
        error[i] = std::round(x * factors[i] / step) * step / factors[i] - x;
        mean[i] += error[i];
      }
      errors.push_back(error);
    }
    for (double& each : mean) each /= static_cast<double>(errors.size());
    for (const auto& error : errors) {
      for (size_t i = 0; i < dim; ++i) {
        for (size_t j = 0; j < dim; ++j) {
          total += (error[i] - mean[i]) * double{sample.moment[i * dim + j]} * (error[j] - mean[j]);
        }
      }
    }
  }
  return total;
}

const ChannelGroups kPairs = {{0, 3}, {1, 4}, {2, 5}};
const std::vector<ExponentSet> kAll(3);

}  // namespace

TEST_CASE("key codecs: are those of the cache, bit for bit") {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    check_codec(Int8Keys{64}, KvRow{KvFormat::int8_per_token_head, 64, 0}, 1.0f, seed);
    for (const float stored : {1.0f, 0.3f, 1e-4f}) {
      check_codec(Nvfp4Keys{16, stored}, KvRow{KvFormat::nvfp4, 64, 0}, stored, seed);
    }
  }
}

TEST_CASE("key error: is what its definition says, for any exponents") {
  const HeadSample sample = sample_of({9, 1, 0.2f, 5, 1, 0.1f}, {7, 12}, 3);
  const auto error = make_key_error(sample, kPairs, KvFormat::int8_per_token_head, 1.0f);
  for (const Exponents& exponents :
       {Exponents{0, 0, 0}, Exponents{-3, 0, 2}, Exponents{1, -2, 8}}) {
    error->set(exponents);
    // Errors of single codes are computed in f32: a few 2^-24 of K, while the errors are 1/254 of
    // it.
    CHECK(error->value() == doctest::Approx(plain_error(sample, kPairs, exponents)).epsilon(1e-4));
  }
}

TEST_CASE("key error: a change of one exponent is foretold, and its state stays right") {
  for (const KvFormat format : {KvFormat::int8_per_token_head, KvFormat::nvfp4}) {
    std::vector<float> sizes(32, 1.0f);
    sizes[3] = 20;
    sizes[17] = 0.1f;
    const HeadSample sample = sample_of(sizes, {4, 9, 9, 15}, 5);
    ChannelGroups groups;
    for (int64_t i = 0; i < 16; ++i) groups.push_back({i, i + 16});
    const auto error = make_key_error(sample, groups, format, 0.01f);
    const auto anew = make_key_error(sample, groups, format, 0.01f);
    Exponents exponents(groups.size());
    for (const auto& [group, exponent] :
         {std::pair{3u, -4}, {0u, -2}, {1u, 3}, {3u, -2}, {15u, 5}, {15u, 0}}) {
      CAPTURE(group);
      const double told = error->value_with(group, exponent);
      error->change(group, exponent);
      exponents[group] = exponent;
      anew->set(exponents);
      CHECK(told == doctest::Approx(anew->value()).epsilon(1e-4));
      CHECK(error->value() == told);
      for (size_t window = 0; window < sample.ends.size(); ++window) {
        CHECK(error->by_window()[window] ==
              doctest::Approx(anew->by_window()[window]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("exponent search: finds what trying all exponents finds") {
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    const HeadSample sample = sample_of({30, 1, 0.3f, 20, 2, 0.1f}, {10, 20}, seed);
    const std::vector<HeadSample> heads = {sample};
    double least = HUGE_VAL;
    for (int b = -8; b <= 8; ++b) {
      for (int c = -8; c <= 8; ++c) {
        least = std::min(least, plain_error(sample, kPairs, {0, b, c}));
      }
    }
    const Exponents found = search_exponents(heads, kPairs, kAll, {});
    // Descent stops if a step gains less than 1 / 2000, so it may end near the best point.
    CHECK(plain_error(sample, kPairs, found) <= least * 1.1);
    CHECK(plain_error(sample, kPairs, found) < plain_error(sample, kPairs, {0, 0, 0}) / 3);
  }
}

TEST_CASE("exponent search: takes only exponents that are allowed") {
  const std::vector<HeadSample> heads = {sample_of({30, 1, 0.3f, 20, 2, 0.1f}, {20}, 1)};
  std::vector<ExponentSet> allowed = kAll;
  for (int e = -kMostExponent; e <= kMostExponent; ++e) {
    if (e != 0) allowed[1].remove(e);
    if (e < 0) allowed[2].remove(e);
    if (e > 2) allowed[2].remove(e);
  }
  const Exponents found = search_exponents(heads, kPairs, allowed, {});
  CHECK(found[1] == 0);
  CHECK(found[2] >= 0);
  CHECK(found[2] <= 2);
}

TEST_CASE("exponent search: heads that share exponents are weighed together") {
  const std::vector<HeadSample> heads = {sample_of({30, 1, 1, 30, 1, 1}, {10}, 1),
                                         sample_of({1, 1, 1, 1, 1, 1}, {10}, 2)};
  const Exponents found = search_exponents(heads, kPairs, kAll, {});
  const ErrorsOfHeads errors = errors_with(heads, kPairs, found, {});
  CHECK(errors.before[0] == doctest::Approx(plain_error(heads[0], kPairs, {0, 0, 0}) +
                                            plain_error(heads[1], kPairs, {0, 0, 0}))
                                .epsilon(1e-4));
  CHECK(errors.ratio() < 1);
}

TEST_CASE("exponent search: exponents for NVFP4 suit whatever scale is stored") {
  // Large constant channels, as Qwen's first layer has: the rounding of block scales decides.
  HeadSample sample = sample_of(std::vector<float>(32, 1.0f), {40, 80}, 7);
  for (size_t i = 0; i < sample.keys.size(); ++i) {
    const size_t channel = i % 32;
    if (channel % 5 == 0) sample.keys[i] += 20.0f + 3.0f * static_cast<float>(channel);
  }
  ChannelGroups groups;
  for (int64_t i = 0; i < 16; ++i) groups.push_back({i, i + 16});
  const std::vector<ExponentSet> allowed(groups.size());
  const std::vector<HeadSample> heads = {sample};
  const SearchOptions options{.format = KvFormat::nvfp4, .amax = 120};
  const Exponents found = search_exponents(heads, groups, allowed, options);
  double before = 0, after = 0;
  constexpr int kScales = 16;
  for (int i = 0; i < kScales; ++i) {
    const float stored = 120.0f * 4 / 2688 * std::exp2(-static_cast<float>(i) / kScales);
    const auto error = make_key_error(sample, groups, KvFormat::nvfp4, stored);
    before += error->value();
    error->set(found);
    after += error->value();
  }
  CHECK(after < before / 2);
}

TEST_CASE("exponent search: exponents hold up where every window gains") {
  CHECK(holds_up({.before = {1, 1}, .after = {0.5, 0.9}}));
  CHECK(!holds_up({.before = {1, 1}, .after = {0.1, 1.1}}));
  CHECK(!holds_up({.before = {1, 1}, .after = {0.95, 0.95}}));
}

}  // namespace fp8kv
