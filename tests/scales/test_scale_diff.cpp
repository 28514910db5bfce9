#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/numbers/half.h"
#include "scales/scale_diff.h"
#include "scales/scale_tensors.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

KvScales some() {
  KvScales scales;
  scales.layers = {
      {{0.0152239129f}, {0.00371f}}, {{0.0188860223f}, {0.00481f}}, {{0.0354178324f}, {0.0801f}}};
  return scales;
}

template <typename Change>
KvScales changed(KvScales scales, Change&& change) {
  for (LayerScales& layer : scales.layers) {
    for (float& scale : layer.k) scale = change(scale, 'k');
    for (float& scale : layer.v) scale = change(scale, 'v');
  }
  return scales;
}

Strings names(const ScaleDiff& diff) {
  Strings names;
  for (const DiffFinding& finding : diff.findings) names.push_back(finding.name);
  return names;
}

// The findings, checked to be the same from both sides.
Strings both_ways(const KvScales& a, const KvScales& b) {
  const Strings there = names(diff_scales(a, b, 0));
  CHECK(names(diff_scales(b, a, 0)) == there);
  return there;
}

TEST_CASE("diff: the same scales differ in nothing") {
  const ScaleDiff diff = diff_scales(some(), some(), 0);
  CHECK(diff.differing_layers == 0);
  CHECK(diff.layers == 3);
  CHECK(diff.rows.size() == 3);
  CHECK(diff.findings.empty());
  CHECK(diff.notes.empty());
}

TEST_CASE("diff: a neighbouring float is the same but for the last place") {
  KvScales other = some();
  other.layers[1].v[0] = std::nextafter(other.layers[1].v[0], 1.0f);
  const ScaleDiff diff = diff_scales(some(), other, 0);
  CHECK(diff.differing_layers == 0);
  CHECK(diff.last_place_layers == 1);
  CHECK(names(diff) == Strings{"last-place"});
}

TEST_CASE("diff: two bits in one scale are a difference, unless that is tolerated") {
  KvScales other = some();
  other.layers[1].v[0] = std::nextafter(std::nextafter(other.layers[1].v[0], 1.0f), 1.0f);
  const ScaleDiff diff = diff_scales(some(), other, 0);
  CHECK(diff.differing_layers == 1);
  CHECK_FALSE(diff.rows[0].differs);
  CHECK(diff.rows[1].differs);
  CHECK(diff.farthest.layer == 1);
  CHECK(diff.rows[1].k.ratio() == 1);
  CHECK(diff.rows[1].v.ratio() > 1);
  CHECK(diff_scales(some(), other, 1e-6).differing_layers == 0);
}

TEST_CASE("diff: the tolerance is of the ratio, on both sides of 1") {
  KvScales other = some();
  other.layers[0].k[0] *= 1.5f;
  other.layers[2].k[0] *= 0.75f;
  CHECK(diff_scales(some(), other, 0.24).differing_layers == 2);
  CHECK(diff_scales(some(), other, 0.26).differing_layers == 1);
  CHECK(diff_scales(some(), other, 0.51).differing_layers == 0);
  CHECK(diff_scales(some(), other, 0).farthest.layer == 0);
}

TEST_CASE("diff: scales twice as large look like those for FNUZ") {
  CHECK(both_ways(some(), changed(some(), [](float s, char) { return 2 * s; })) ==
        Strings{"doubled"});
}

TEST_CASE("diff: scales divided by 240 instead of 448 are named") {
  const auto of = [](float amax_times, float s) { return s * 448 * amax_times; };
  CHECK(both_ways(some(), changed(some(), [&](float s, char) { return of(1 / 240.0f, s); })) ==
        Strings{"divided-by-240"});
}

TEST_CASE("diff: one factor over all is a headroom") {
  const ScaleDiff diff =
      diff_scales(some(), changed(some(), [](float s, char) { return 1.25f * s; }), 0);
  REQUIRE(names(diff) == Strings{"factor"});
  CHECK(diff.findings[0].sentence == "B is 1.2500 times A");
}

TEST_CASE("diff: a division in place of a multiplication is the last place") {
  const auto divided = [](float s, char) { return s * 448.0f / 448.0f * (1 + 0x1p-23f); };
  CHECK(both_ways(some(), changed(some(), divided)) == Strings{"last-place"});
}

TEST_CASE("diff: BF16 and F16 rounding are told apart") {
  const auto bf16 = [](float s, char) { return bf16_to_float(bf16_from_float(s)); };
  const auto f16 = [](float s, char) { return f16_to_float(f16_from_float(s)); };
  CHECK(both_ways(some(), changed(some(), bf16)) == Strings{"bf16-rounding"});
  CHECK(both_ways(some(), changed(some(), f16)) == Strings{"f16-rounding"});
}

TEST_CASE("diff: K up to the root of 2 larger with the same V is RoPE, more is not") {
  const auto grown = [](float most) {
    KvScales scales = some();
    scales.layers[0].k[0] *= most;
    scales.layers[1].k[0] *= 1.1f;
    return scales;
  };
  CHECK(both_ways(some(), grown(1.41f)) == Strings{"rope"});
  CHECK(both_ways(some(), grown(1.43f)).empty());
  KvScales both = grown(1.41f);
  both.layers[2].v[0] *= 1.1f;
  CHECK(both_ways(some(), both).empty());
}

TEST_CASE("diff: the larger of K and V for both is a fusion") {
  KvScales fused = some();
  for (LayerScales& layer : fused.layers) {
    layer.k = layer.v = {std::max(layer.k[0], layer.v[0])};
  }
  const ScaleDiff diff = diff_scales(fused, some(), 0);
  REQUIRE(names(diff) == Strings{"fused"});
  CHECK(diff.findings[0].sentence == "A has the larger of K's and V's scale of B for both");
  CHECK(diff.findings[0].remedy == "nothing saturates with either; B is the finer");
}

TEST_CASE("diff: a fusion stays one when it was stored in BF16 or F16") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    KvScales fused = some();
    for (LayerScales& layer : fused.layers) {
      layer.k = layer.v = {rounded_to(std::max(layer.k[0], layer.v[0]), dtype)};
    }
    const ScaleDiff diff = diff_scales(some(), fused, 0);
    REQUIRE(names(diff) == Strings{"fused"});
    CHECK(
        diff.findings[0].sentence ==
        cat("B has the larger of K's and V's scale of A for both, rounded to ", dtype_name(dtype)));
  }
}

TEST_CASE("diff: scales that were raised to 1 are told from those that are all 1") {
  KvScales large = some();
  large.layers[1].k[0] = 3;
  CHECK(both_ways(large, changed(large, [](float s, char) { return std::max(s, 1.0f); })) ==
        Strings{"floored"});
}

TEST_CASE("diff: scales that are all 1 hold no measurement") {
  CHECK(both_ways(some(), changed(some(), [](float, char) { return 1.0f; })) ==
        Strings{"all-ones"});
}

TEST_CASE("diff: scales for FNUZ are compared as those for E4M3FN") {
  const ScaleDiff diff = diff_scales(with_format(some(), KvFormat::e4m3fnuz), some(), 0);
  CHECK(diff.differing_layers == 0);
  CHECK(diff.notes == Strings{"A is for E4M3FNUZ: its scales were halved"});
}

TEST_CASE("diff: heads are compared one by one, and with a layer's scale as their maximum") {
  KvScales heads = some();
  for (LayerScales& layer : heads.layers) {
    layer.k.push_back(layer.k[0] / 2);
    layer.v.push_back(layer.v[0] / 3);
  }
  const ScaleDiff same = diff_scales(heads, heads, 0);
  CHECK(same.per_head);
  CHECK(same.rows.size() == 6);
  CHECK(same.rows[3].layer == 1);
  CHECK(same.rows[3].head == 1);
  const ScaleDiff mixed = diff_scales(some(), heads, 0);
  CHECK(mixed.differing_layers == 0);
  CHECK(mixed.notes ==
        Strings{"B has one scale per KV head, the other per layer: the largest of a layer counts"});
}

TEST_CASE("diff: other numbers of layers and heads have nothing to compare") {
  KvScales fewer = some();
  fewer.layers.pop_back();
  CHECK(test::error_of([&] { diff_scales(some(), fewer, 0); }, ErrorKind::check) ==
        "A has scales for 3 layers, B for 2");
  KvScales two = some(), three = some();
  for (LayerScales& layer : two.layers) layer = {{1, 2}, {1, 2}};
  for (LayerScales& layer : three.layers) layer = {{1, 2, 3}, {1, 2, 3}};
  CHECK(test::error_of([&] { diff_scales(two, three, 0); }, ErrorKind::check) ==
        "A has scales for 2 KV heads, B for 3");
}

// some() with a layer without a cache before each layer and after the last.
KvScales with_gaps() {
  KvScales scales;
  for (const LayerScales& layer : some().layers) {
    scales.layers.insert(scales.layers.end(), {LayerScales{}, layer});
  }
  scales.layers.push_back({});
  return scales;
}

TEST_CASE("diff: layers without a cache in either are no rows and no difference") {
  KvScales other = with_gaps();
  other.layers[3].v[0] *= 2;
  const ScaleDiff diff = diff_scales(with_gaps(), other, 0);
  CHECK(diff.layers == 3);
  CHECK(diff.without_cache == std::vector<size_t>{0, 2, 4, 6});
  REQUIRE(diff.rows.size() == 3);
  CHECK(diff.rows[1].layer == 3);
  CHECK(diff.differing_layers == 1);
  CHECK(diff.farthest.layer == 3);
  // A file in vLLM's schema does not mention the last layer.
  other.layers.pop_back();
  CHECK(diff_scales(other, with_gaps(), 0).without_cache == std::vector<size_t>{0, 2, 4, 6});
}

TEST_CASE("diff: a layer that has a cache on one side alone cannot be compared") {
  KvScales other = with_gaps();
  other.layers[0] = other.layers[2] = {{1}, {1}};
  const auto error_of = [](const KvScales& a, const KvScales& b) {
    return test::error_of([&] { diff_scales(a, b, 0); }, ErrorKind::check);
  };
  CHECK(error_of(with_gaps(), other) == "B has scales for layers 0 and 2, where A has no KV cache");
  CHECK(error_of(other, with_gaps()) == "A has scales for layers 0 and 2, where B has no KV cache");
}

}  // namespace
}  // namespace fp8kv
