#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/scales/scale_grid.h"
#include "policy/make_scales.h"
#include "policy/policies.h"
#include "support/expect_error.h"
#include "support/magnitudes.h"

using namespace fp8kv;
using test::counts_of;

namespace {

float scale_of(const std::string& policy, const MagnitudeCounts& counts) {
  const Policy parsed = parse_policy(policy);
  return parsed.kind->scale(counts, parsed.parameter, KvFormat::e4m3fn);
}

// `n` values of a normal distribution, and some outliers of 40 sigma.
std::vector<float> bell(int n, int outliers) {
  Rng rng(3);
  std::vector<float> values;
  for (int i = 0; i < n; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    values.push_back(static_cast<float>(radius * std::cos(2 * M_PI * rng.uniform())));
  }
  for (int i = 0; i < outliers; ++i) values.push_back(40);
  return values;
}

double stored_error(const std::vector<float>& values, double scale) {
  double sum = 0;
  for (const float value : values) {
    const double magnitude = std::min(std::abs(value) / scale, 448.0);
    const double step = std::exp2(std::max(std::floor(std::log2(magnitude)), -6.0) - 3);
    const double off = std::abs(value) - std::nearbyint(magnitude / step) * step * scale;
    sum += off * off;
  }
  return sum;
}

}  // namespace

TEST_CASE("policies: amax, its headroom and unit are what they say") {
  const MagnitudeCounts counts = counts_of({0.5f, -7.0f, 3.0f});
  CHECK(scale_of("amax", counts) == 7.0f / 448);
  CHECK(scale_of("amax*2", counts) == 2 * (7.0f / 448));
  CHECK(scale_of("amax*0.5", counts) == 0.5f * (7.0f / 448));
  CHECK(scale_of("unit", counts) == 1.0f);
  CHECK(scale_of("amax*4", counts_of({0.0f})) == 1.0f);
}

TEST_CASE("policies: loss takes the mantissa that loses least, no smaller than amax") {
  MagnitudeCounts counts = counts_of({0.5f, -7.0f, 3.0f});
  const auto mantissa = [](int i) { return static_cast<float>(std::exp2(i / 16.0)); };
  for (const int best : {0, 3, 15}) {
    CAPTURE(best);
    counts.losses.assign(kScaleMantissas, 9);
    counts.losses[static_cast<size_t>(best)] = 8;
    // 7 / 448 is 2^-6.
    CHECK(scale_of("loss", counts) == mantissa(best) / 64);
    CHECK(scale_of("head-loss", counts) == mantissa(best) / 64);
    CHECK(scale_of("loss*2", counts) == mantissa(best) / 32);
    const float more = scale_of("loss*1.1", counts);
    CHECK(more == mantissa(best) / (best < 3 ? 32.0f : 64.0f));
  }
  counts.losses.assign(kScaleMantissas, 9);
  CHECK(scale_of("loss", counts) == 1.0f / 64);  // the first among equals
  MagnitudeCounts zero = counts_of({0.0f});
  zero.losses.assign(kScaleMantissas, 0);
  CHECK(scale_of("loss", zero) == 1.0f);
}

TEST_CASE("policies: layers whose losses are not measured get amax with the same headroom") {
  CHECK(policy_name(without_losses(parse_policy("loss*2"))) == "amax*2");
  CHECK(policy_name(without_losses(parse_policy("head-loss"))) == "head");
  CHECK(policy_name(without_losses(parse_policy("mse"))) == "mse");
}

TEST_CASE("policies: a percentile is within a bin of the sorted values', and 100 is amax") {
  std::vector<float> values = bell(20000, 20);
  const MagnitudeCounts counts = counts_of(values);
  for (float& value : values) value = std::abs(value);
  std::sort(values.begin(), values.end());
  for (const double percent : {50.0, 99.0, 99.9, 99.95}) {
    const auto rank =
        static_cast<size_t>(std::ceil(static_cast<double>(values.size()) * percent / 100));
    const float exact = values[rank - 1];
    const float found = magnitude_percentile(counts, percent);
    CHECK(found >= exact);
    CHECK(found <= exact * (1 + 1.0f / 64));
  }
  CHECK(magnitude_percentile(counts, 100) == 40.0f);
  CHECK(scale_of("p100", counts) == scale_of("amax", counts));
  CHECK(magnitude_percentile(counts_of({}), 99) == 0);
  CHECK(scale_of("p99", counts_of({0.0f, 0.0f})) == 1.0f);
}

TEST_CASE("policies: mse is no worse on the values than any scale within four octaves") {
  for (const int outliers : {0, 1, 200}) {
    const std::vector<float> values = bell(20000, outliers);
    const MagnitudeCounts counts = counts_of(values);
    const double chosen = stored_error(values, scale_of("mse", counts));
    const double amax = scale_of("amax", counts);
    for (double step = -4; step <= 4; step += 1.0 / 16) {
      // Policies take the middle of each bin, which costs up to 1/64 of the rounding error.
      CHECK(chosen <= stored_error(values, amax * std::exp2(step)) * (1 + 1.0 / 64));
    }
  }
}

TEST_CASE("policies: scales are shared as asked: by tensor, by head, by K and V") {
  std::vector<LayerMagnitudes> layers(1);
  layers[0].k = {counts_of({4.48f}), counts_of({448.0f})};
  layers[0].v = {counts_of({0.448f}), counts_of({44.8f})};
  const auto scales = [&](const char* policy) {
    return make_scales(layers, parse_policy(policy)).layers[0];
  };
  const auto of = [](float amax) { return amax / 448; };
  CHECK(scales("amax") == LayerScales{{of(448)}, {of(44.8f)}});
  CHECK(scales("head") == LayerScales{{of(4.48f), of(448)}, {of(0.448f), of(44.8f)}});
  CHECK(scales("shared") == LayerScales{{of(448)}, {of(448)}});
  CHECK(scales("shared*2") == LayerScales{{2 * of(448)}, {2 * of(448)}});
}

TEST_CASE("policies: a factor or percentage out of range is said to be") {
  const auto refusal = [](const char* text) { return test::error_of([&] { parse_policy(text); }); };
  CHECK(refusal("amax*") == "'amax*': the factor '' is no number from 1/1024 to 1024");
  CHECK(refusal("amax*0") == "'amax*0': the factor '0' is no number from 1/1024 to 1024");
  CHECK(refusal("head*-1") == "'head*-1': the factor '-1' is no number from 1/1024 to 1024");
  CHECK(refusal("shared*nan") == "'shared*nan': the factor 'nan' is no number from 1/1024 to 1024");
  CHECK(refusal("p0") == "'p0': the percentage 0 is not above 0 and at most 100");
  CHECK(refusal("p101") == "'p101': the percentage 101 is not above 0 and at most 100");
}

TEST_CASE("policies: what is none is refused with the list of all") {
  const std::string list =
      "amax[*F], head[*F], shared[*F], loss[*F], head-loss[*F], mse, pNN.NN and unit";
  for (const char* text : {"", "p", "p99.9x", "msee", "amax2", "unit*2"}) {
    const std::string message = test::error_of([&] { parse_policy(text); });
    CHECK(message.starts_with(cat(quote(text), " is none of ", list)));
  }
  CHECK(test::error_of([] { parse_policy("amx"); }) ==
        cat("'amx' is none of ", list, " (did you mean 'amax'?)"));
}
