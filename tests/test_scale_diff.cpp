#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "core/half.h"
#include "io/scale_diff.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

KvScales two_layers() {
  KvScales scales;
  scales.layers = {{{0.0217f}, {0.0122f}}, {{0.0597f}, {0.0133f}}};
  return scales;
}

// `a` with K and V of every layer changed by functions of the scale.
template <typename K, typename V>
KvScales changed(KvScales scales, K k, V v) {
  for (LayerScales& layer : scales.layers) {
    for (float& scale : layer.k) scale = k(scale);
    for (float& scale : layer.v) scale = v(scale);
  }
  return scales;
}

std::vector<std::string> names_of(const ScaleDiff& diff) {
  std::vector<std::string> names;
  for (const DiffFinding& finding : diff.findings) names.push_back(finding.name);
  return names;
}

const auto same = [](float x) { return x; };
const auto twice = [](float x) { return 2 * x; };

}  // namespace

TEST_CASE("diff_scales: the same scales differ nowhere and show no pattern") {
  const ScaleDiff diff = diff_scales(two_layers(), two_layers(), 0);
  CHECK(diff.differing_layers == 0);
  CHECK(diff.layers == 2);
  CHECK(diff.findings.empty());
}

TEST_CASE("diff_scales: one bit is a difference, and within a tolerance none") {
  const KvScales a = two_layers();
  KvScales b = a;
  b.layers[1].v[0] = std::nextafter(b.layers[1].v[0], 1.0f);
  CHECK(diff_scales(a, b, 0).differing_layers == 1);
  CHECK(diff_scales(a, b, 0).farthest.layer == 1);
  CHECK(diff_scales(a, b, 1e-6).differing_layers == 0);
}

TEST_CASE("diff_scales: scales for FNUZ count half, so that the pair is the same") {
  const KvScales fnuz = with_format(two_layers(), Fp8Format::e4m3fnuz);
  CHECK(diff_scales(two_layers(), fnuz, 0).differing_layers == 0);
}

TEST_CASE("diff_scales: each pattern has a finding of its own") {
  const KvScales a = two_layers();
  const auto patterns = {
      changed(a, twice, twice),  // exactly 2
      changed(
          a, [](float x) { return x * (448.0f / 240.0f); },
          [](float x) { return x * (448.0f / 240.0f); }),  // 448 / 240
      changed(
          a, [](float x) { return x * 1.25f; }, same),  // K alone
      changed(
          a, [](float x) { return bf16_to_float(bf16_from_float(x)); },
          [](float x) { return bf16_to_float(bf16_from_float(x)); }),  // rounded
  };
  std::vector<std::string> seen;
  for (const KvScales& b : patterns) {
    const std::vector<std::string> names = names_of(diff_scales(a, b, 0));
    REQUIRE(names.size() == 1);
    CHECK(std::find(seen.begin(), seen.end(), names[0]) == seen.end());
    seen.push_back(names[0]);
  }
  KvScales larger = a;
  for (LayerScales& layer : larger.layers)
    layer.k[0] = layer.v[0] = std::max(layer.k[0], layer.v[0]);
  const std::vector<std::string> fused = names_of(diff_scales(a, larger, 0));
  REQUIRE(fused.size() == 1);
  CHECK(std::find(seen.begin(), seen.end(), fused[0]) == seen.end());
}

TEST_CASE("diff_scales: a scale per head is compared with the layer's by its maximum") {
  const KvScales a = two_layers();
  KvScales b;
  b.layers = {{{0.001f, 0.0217f}, {0.0122f, 0.002f}}, {{0.0597f, 0.01f}, {0.0133f, 0.0133f}}};
  const ScaleDiff diff = diff_scales(a, b, 0);
  CHECK_FALSE(diff.per_head);
  CHECK(diff.differing_layers == 0);
  CHECK(diff.notes.size() == 1);
}

TEST_CASE("diff_scales: another number of layers is a difference of its own") {
  KvScales b = two_layers();
  b.layers.pop_back();
  const std::string message =
      test::error_of([&] { diff_scales(two_layers(), b, 0); }, ErrorKind::check);
  CHECK(message.find("2") != message.npos);
  CHECK(message.find("1") != message.npos);
}

}  // namespace fp8kv
