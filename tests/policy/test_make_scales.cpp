#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "policy/make_scales.h"
#include "support/expect_error.h"
#include "support/magnitudes.h"
#include "support/program/capture_stderr.h"

namespace fp8kv {
namespace {

// One layer whose KV heads have these maxima.
std::vector<LayerMagnitudes> layer_of(const std::vector<float>& k, const std::vector<float>& v) {
  std::vector<LayerMagnitudes> layers(1);
  for (const float amax : k) layers[0].k.push_back(test::counts_of({amax}));
  for (const float amax : v) layers[0].v.push_back(test::counts_of({amax}));
  layers[0].q = layers[0].k;
  return layers;
}

TEST_CASE("make_scales: one scale is amax over heads / 448, per head each its own") {
  const auto layers = layer_of({6.8203125f, 3.0f}, {0.5f, 0.25f});
  const KvScales tensor = make_scales(layers, parse_policy("amax"));
  CHECK(tensor.layers[0].k == std::vector<float>{6.8203125f / 448});
  CHECK(tensor.layers[0].v == std::vector<float>{0.5f / 448});
  const KvScales head = make_scales(layers, parse_policy("head*2"));
  CHECK(head.layers[0].k == std::vector<float>{2 * (6.8203125f / 448), 2 * (3.0f / 448)});
  CHECK(head.provenance.amax[0].q == std::vector<float>{6.8203125f, 3});
}

TEST_CASE("make_scales: a K that is zero throughout gets 1") {
  CHECK(make_scales(layer_of({0}, {1}), parse_policy("amax*2")).layers[0].k ==
        std::vector<float>{1.0f});
}

TEST_CASE("make_scales: a layer without heads gets no scales, by any policy, and no warning") {
  std::vector<LayerMagnitudes> layers = layer_of({1, 2}, {3, 4});
  layers.emplace_back();
  for (const char* policy : {"amax", "head", "shared", "mse", "p99", "unit"}) {
    CAPTURE(policy);
    const KvScales scales = make_scales(layers, parse_policy(policy));
    CHECK(scales.layers[0] == make_scales({layers[0]}, parse_policy(policy)).layers[0]);
    CHECK(scales.layers[1] == LayerScales{});
    CHECK(test::stderr_of([&] {
            Log log(Verbosity::normal);
            warn_of_zeros(scales, log);
          }) == "");
  }
}

TEST_CASE("make_scales: a policy is noted where granularity and headroom do not say it") {
  struct Case {
    const char* policy;
    double headroom;
    const char* noted;
    const char* name;  // the calibration's name
  };
  for (const Case& c : {Case{"amax", 1, "", "amax"}, Case{"amax*1.50", 1.5, "", "amax*1.5"},
                        Case{"head*0.5", 0.5, "", "head*0.5"}, Case{"mse", 1, "mse", "mse"},
                        Case{"shared*2", 2, "shared*2", "shared*2"},
                        Case{"p099.90", 1, "p99.9", "p99.9"}, Case{"unit", 1, "unit", "unit"}}) {
    CAPTURE(c.policy);
    KvScales scales = make_scales(layer_of({1, 2}, {3, 4}), parse_policy(c.policy));
    CHECK(scales.provenance.headroom == c.headroom);
    CHECK(scales.provenance.policy == c.noted);
    CHECK(policy_name(scales) == c.noted);
    scales.provenance.source = kCalibrateSource;
    CHECK(policy_name(scales) == c.name);
    CHECK(policy_name(policy_of(scales)) == c.name);
  }
}

TEST_CASE("make_scales: maxima alone give the same scales where a policy needs no histograms") {
  const auto layers = layer_of({6.5f, 3}, {0.5f, 0.25f});
  const KvScales whole = make_scales(layers, parse_policy("amax"));
  const auto maxima = magnitudes_of(whole.provenance.amax);
  for (const PolicyKind& kind : policy_kinds()) {
    if (needs_histograms(kind)) continue;
    CAPTURE(kind.name);
    KvScales scales;
    apply_policy(parse_policy(kind.name), maxima, scales);
    CHECK(scales.layers == make_scales(layers, parse_policy(kind.name)).layers);
  }
}

TEST_CASE("make_scales: what is zero throughout is said with the scale that it gets") {
  const auto said = [](const char* policy, const std::vector<float>& k,
                       const std::vector<float>& v) {
    return test::stderr_of([&] {
      Log log(Verbosity::normal);
      warn_of_zeros(make_scales(layer_of(k, v), parse_policy(policy)), log);
    });
  };
  CHECK(said("amax", {0, 0}, {1, 0}) == "warning: layer 0: K is zero throughout; its scale is 1\n");
  CHECK(said("head", {2, 0}, {1, 1}) ==
        "warning: layer 0: K is zero throughout in 1 KV head; scale 1 there\n");
  CHECK(said("shared", {0, 0}, {1, 1}) == "");
  CHECK(said("shared", {0}, {0}) ==
        "warning: layer 0: K is zero throughout; its scale is 1\n"
        "warning: layer 0: V is zero throughout; its scale is 1\n");
}

TEST_CASE("make_scales: a policy that only another version knows is refused") {
  KvScales scales = make_scales(layer_of({1}, {1}), parse_policy("mse"));
  scales.provenance.policy = "entropy";
  CHECK(test::error_of([&] { policy_of(scales); }).starts_with("'entropy' is none of "));
}

}  // namespace
}  // namespace fp8kv
