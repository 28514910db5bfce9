// Merging calibrations by any policy, with their histograms.
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/log.h"
#include "core/scales/scale_grid.h"
#include "core/scales/scales.h"
#include "policy/make_scales.h"
#include "policy/merge.h"
#include "support/expect_error.h"
#include "support/magnitudes.h"

namespace fp8kv {
namespace {

// A calibration and its histograms: one layer, two KV heads with these maxima, scales by `policy`.
struct Counted {
  Calibration calibration;
  Histograms histograms;
};

Counted counted(const std::string& name, std::vector<float> k, const std::string& policy) {
  const auto heads = [](const std::vector<float>& maxima) {
    std::vector<MagnitudeCounts> counts;
    for (const float amax : maxima) {
      counts.push_back(test::counts_of({amax, amax / 2, amax / 300, amax / 300}));
    }
    return counts;
  };
  const std::vector<LayerMagnitudes> layers = {{heads(k), heads(k), heads({1, 2})}};
  Counted made{{"'" + name + ".json'", make_scales(layers, parse_policy(policy))},
               {"'" + name + ".safetensors'", layers}};
  ModelConfig config;
  config.model_type = "llama";
  config.layers = {{Mixing::full, 0, 2, 8, 8, 0}};
  add_run(config,
          {.source = kCalibrateSource,
           .tool_version = FP8KV_VERSION,
           .model_fingerprint = "kv-proj-v1:0a",
           .windows = 1,
           .data = {{name, 9, "sha-" + name}}},
          made.calibration.scales);
  return made;
}

KvScales merged_by(const std::vector<Counted>& parts, const std::string& policy,
                   const std::vector<Histograms>& histograms) {
  Log log(Verbosity::quiet);
  std::vector<Calibration> calibrations;
  for (const Counted& part : parts) calibrations.push_back(part.calibration);
  MergeBy by{.histograms = histograms};
  if (!policy.empty()) by.policy = parse_policy(policy);
  return merge_calibrations(calibrations, log, by);
}

TEST_CASE("merge: any policy gives what it makes of all that was counted") {
  const Counted a = counted("a", {3, 7}, "amax"), b = counted("b", {5, 1}, "head*2");
  std::vector<LayerMagnitudes> all = a.histograms.layers;
  add_up(all, b.histograms.layers);
  for (const char* policy : {"amax", "amax*4", "head", "shared", "unit", "mse", "p70"}) {
    CAPTURE(policy);
    const KvScales sum = merged_by({a, b}, policy, {b.histograms, a.histograms});
    const KvScales expected = make_scales(all, parse_policy(policy));
    CHECK(sum.layers == expected.layers);
    CHECK(sum.provenance.amax == expected.provenance.amax);
    CHECK(sum.provenance.octaves == expected.provenance.octaves);
    CHECK(policy_name(sum) == policy);
    if (needs_histograms(*parse_policy(policy).kind)) continue;
    CHECK(merged_by({a, b}, policy, {}).layers == expected.layers);
  }
}

TEST_CASE("merge: parts of a policy that needs histograms merge by it, in any grouping") {
  const Counted a = counted("a", {3, 7}, "mse"), b = counted("b", {5, 1}, "mse"),
                c = counted("c", {4, 9}, "mse");
  const std::vector<Histograms> all = {a.histograms, b.histograms, c.histograms};
  const KvScales sum = merged_by({a, b, c}, "", all);
  CHECK(sum.provenance.policy == "mse");
  Counted two = a;
  two.calibration = {"'two'", merged_by({b, a}, "", {a.histograms, b.histograms})};
  CHECK(merged_by({two, c}, "", all) == sum);
}

TEST_CASE("merge: losses add up, and histograms without them are named") {
  Counted a = counted("a", {3, 7}, "amax"), b = counted("b", {5, 1}, "amax");
  CHECK(test::error_of([&] {
          merged_by({a, b}, "loss", {a.histograms, b.histograms});
        }) == "'a.safetensors': has no losses of scales, and the policy 'loss' needs them");
  // The mantissa that is best in the sum is best in neither.
  const auto add = [](Histograms& histograms, size_t worst) {
    for (LayerMagnitudes& layer : histograms.layers) {
      for (auto* heads : {&layer.k, &layer.v}) {
        for (MagnitudeCounts& head : *heads) {
          head.losses.assign(kScaleMantissas, 10);
          head.losses[4] = 4;
          head.losses[worst] = 1;
        }
      }
    }
  };
  add(a.histograms, 2);
  add(b.histograms, 9);
  const KvScales sum = merged_by({a, b}, "loss", {a.histograms, b.histograms});
  int exponent = 0;
  for (const LayerScales& layer : sum.layers) {
    CHECK(2 * std::frexp(layer.k[0], &exponent) == static_cast<float>(std::exp2(4 / 16.0)));
    CHECK(2 * std::frexp(layer.v[0], &exponent) == static_cast<float>(std::exp2(4 / 16.0)));
  }
  CHECK(sum.provenance.policy == "loss");
}

TEST_CASE("merge: histograms that are missing or of something else are said, with the file") {
  const Counted a = counted("a", {3, 7}, "amax"), b = counted("b", {5, 1}, "amax"),
                c = counted("c", {4, 9}, "amax");
  const auto refusal = [&](const std::string& policy, const std::vector<Histograms>& files) {
    return test::error_of([&] { merged_by({a, b}, policy, files); });
  };
  CHECK(refusal("mse", {}) ==
        "'a.json': the histograms of what it counted are not there, and the policy 'mse' needs "
        "them");
  CHECK(refusal("p99", {a.histograms}) ==
        "'b.json': the histograms of what it counted are not there, and the policy 'p99' needs "
        "them");
  CHECK(refusal("amax", {a.histograms}) ==
        "'b.json': the histograms of what it counted are not there");
  CHECK(refusal("mse", {a.histograms, b.histograms, c.histograms}) ==
        "'c.safetensors': are histograms of none of the calibrations");
  CHECK(refusal("mse", {a.histograms, b.histograms, a.histograms}) ==
        "the histograms count more than the calibrations do: some are there twice");
  Histograms other = b.histograms;
  other.layers.push_back(other.layers[0]);
  CHECK(refusal("mse", {a.histograms, other}) ==
        "'b.safetensors': has other layers or KV heads than 'a.json'");
}

TEST_CASE("merge: without a policy of its own the parts must have the same") {
  const Counted a = counted("a", {3, 7}, "amax"), b = counted("b", {5, 1}, "mse");
  CHECK(test::error_of([&] {
          merged_by({a, b}, "", {a.histograms, b.histograms});
        }) == "'b.json': the policy is 'mse', but 'a.json' has 'amax'");
  Counted unknown = b;
  unknown.calibration.scales.provenance.policy = "entropy";
  CHECK(test::error_of([&] {
          merged_by({a, unknown}, "amax", {});
        }).starts_with("'b.json': 'entropy' is none of amax[*F], "));
}

TEST_CASE("merge: a shared scale that was edited is found out as any other") {
  Counted a = counted("a", {3, 7}, "shared");
  CHECK(merged_by({a}, "", {}) == a.calibration.scales);
  a.calibration.scales.layers[0].v[0] /= 2;
  CHECK(test::error_of([&] { merged_by({a}, "", {}); }) ==
        "'a.json': layer 0, V: the scale is 0.0078125, but its amax of 7 by the policy 'shared' "
        "gives 0.015625");
}

}  // namespace
}  // namespace fp8kv
