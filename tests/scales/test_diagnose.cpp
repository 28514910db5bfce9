#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/text.h"
#include "scales/diagnose.h"

namespace fp8kv {
namespace {

using Ids = std::vector<std::string>;
using Numbers = std::vector<float>;

// Scales of K and V in turn, two for each layer.
ScaleCase of(const Numbers& values, DType dtype = DType::f32) {
  ScaleCase found;
  for (size_t i = 0; i < values.size(); ++i) {
    const ScaleOf kind = i % 2 == 0 ? ScaleOf::k : ScaleOf::v;
    found.tensors.push_back(
        {cat("t", i), static_cast<int64_t>(i / 2), kind, dtype, {}, {values[i]}, nullptr, ""});
  }
  found.has_cache.assign(values.size() / 2, true);
  return found;
}

Ids ids_of(const ScaleCase& found) {
  Ids ids;
  for (const Diagnosis& diagnosis : diagnose(found)) ids.push_back(diagnosis.id);
  return ids;
}

TEST_CASE("diagnose: scales out of any plausible range are named, the farthest first") {
  const auto text = [](const Numbers& values) {
    for (const Diagnosis& each : diagnose(of(values))) {
      if (each.id == "implausible-scale") return each.sentence;
    }
    return std::string();
  };
  CHECK(text({0.02f, 3.4e38f, 0.03f, 0.1f}) ==
        "the scale of layer 0 V is 3.4e+38, expected 1.3e-10 to 9358, which magnitudes from 6e-8 "
        "to 65504 lead to");
  CHECK(text({0.02f, 9400, 2e-38f, 0.1f}) ==
        "the scale of layer 1 K is 2e-38, expected 1.3e-10 to 9358, which magnitudes from 6e-8 to "
        "65504 lead to (2 such scales in all)");
  // The limits: the largest F16 magnitude with a headroom of 64, and the smallest magnitude.
  CHECK(text({65504.0f / 448 * 64, 0x1p-24f / 448 * 1.000001f}) == "");
  CHECK(text({65504.0f / 448 * 64.1f, 1}) != "");
  CHECK(text({0x1p-24f / 448 * 0.99f, 1}) != "");
}

// `n` maxima between 0.1 and 100 that this dtype can represent, like those of activations.
Numbers maxima(Rng& rng, size_t n, DType dtype) {
  Numbers out;
  for (size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(rng.next() >> 11) * 0x1p-53;
    out.push_back(rounded_to(static_cast<float>(0.1 * std::pow(1000.0, unit)), dtype));
  }
  return out;
}

template <typename Change>
Numbers changed(Numbers values, Change change) {
  for (float& value : values) value = change(value);
  return values;
}

const Numbers kSome = {0.021763394f, 0.012233189f, 0.0597447f, 0.013314384f};

TEST_CASE("diagnose: what calibration makes is nothing remarkable") {
  Rng rng(11);
  const struct {
    const char* what;
    float (*scale)(float amax);
  } ways[] = {{"times 1/448", [](float a) { return a * (1 / 448.0f); }},
              {"over 448", [](float a) { return a / 448; }},
              {"headroom 2", [](float a) { return a * (1 / 448.0f) * 2; }},
              {"headroom 1.5", [](float a) { return a * (1 / 448.0f) * 1.5f; }},
              {"a power of two", [](float a) { return std::exp2(std::ceil(std::log2(a / 448))); }}};
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const auto& way : ways) {
      CAPTURE(way.what);
      for (int round = 0; round < 200; ++round) {
        CHECK(ids_of(of(changed(maxima(rng, 4, dtype), way.scale))) == Ids{});
      }
    }
  }
}

TEST_CASE("diagnose: scales over 240 are told by the 16-bit maxima they came from") {
  Rng rng(12);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Numbers amax = maxima(rng, 8, dtype);
    CHECK(ids_of(of(changed(amax, [](float a) { return a / 240; }))) == Ids{"divided-by-240"});
    CHECK(ids_of(of(changed(amax, [](float a) { return a * (1 / 240.0f); }))) ==
          Ids{"divided-by-240"});
    Numbers mixed = changed(amax, [](float a) { return a / 240; });
    mixed[3] = 0.021763394f;
    CHECK(ids_of(of(mixed)) == Ids{});
  }
}

TEST_CASE("diagnose: AutoFP8's arithmetic is told wherever its numbers went") {
  Rng rng(13);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Numbers scales =
        changed(maxima(rng, 8, dtype), [&](float a) { return 1 / rounded_to(448 / a, dtype); });
    CHECK(is_autofp8_rounding(scales));
    CHECK(ids_of(of(scales)) == Ids{"autofp8-rounding"});
  }
  CHECK_FALSE(is_autofp8_rounding(kSome));
  CHECK(is_autofp8_rounding({0, -1, 1 / 18.4375f}));  // impossible scales do not count
  CHECK_FALSE(is_autofp8_rounding({0, -1}));
}

TEST_CASE("diagnose: rounding is told by the dtype, and in F32 by the numbers") {
  const auto rounded = [&](DType to, DType stored) {
    return ids_of(of(changed(kSome, [&](float s) { return rounded_to(s, to); }), stored));
  };
  CHECK(rounded(DType::bf16, DType::bf16) == Ids{"bf16-rounded"});
  CHECK(rounded(DType::f16, DType::f16) == Ids{"f16-rounded"});
  CHECK(rounded(DType::bf16, DType::f32) == Ids{"bf16-rounded"});
  CHECK(rounded(DType::f16, DType::f32) == Ids{"f16-rounded"});
  CHECK(rounded(DType::bf16, DType::f16) == Ids{"f16-rounded"});  // named after the stored dtype
  CHECK(ids_of(of(kSome)) == Ids{});
  CHECK(ids_of(of({0.5f, 0.25f, 0.75f, 0.15625f})) == Ids{});  // numbers that a person wrote
  CHECK(ids_of(of({1, 1, 1, 1}, DType::bf16)) == Ids{"all-ones"});
}

TEST_CASE("diagnose: ones, and floors that leave something") {
  CHECK(ids_of(of({1, 1, 1, 1})) == Ids{"all-ones"});
  CHECK(ids_of(of({1, 1, 1, 0.9f})) == Ids{});
  ScaleCase floored = of({1, 1.5f, 1, 1});
  CHECK(ids_of(floored) == Ids{});
  floored.floor = 1;
  REQUIRE(ids_of(floored) == Ids{"floored"});
  CHECK(diagnose(floored)[0].sentence ==
        "3 of 4 scales are exactly 1, to which the tool raises all that are smaller");
  floored.floor = 0.5f;
  CHECK(ids_of(floored) == Ids{});
  ScaleCase all = of({0.045f, 0.045f});
  all.floor = 0.045f;
  CHECK(ids_of(all) == Ids{"floored"});
}

TEST_CASE("diagnose: K before RoPE is a matter of degree, and of a K norm") {
  ScaleCase found = of(kSome);
  found.observed = Observation::after_rope;
  CHECK(ids_of(found) == Ids{});
  for (const Observation where : {Observation::before_rope, Observation::likely_before_rope}) {
    found.observed = where;
    CHECK(ids_of(found) == Ids{"k-before-rope"});
  }
  CHECK(diagnose(found)[0].sentence ==
        "K was most likely measured before RoPE, which can make a value 1.41 times as large: it "
        "then saturates");
  found.observed = Observation::before_rope;
  found.k_norm = true;
  CHECK(diagnose(found)[0].sentence ==
        "K was measured at its projection, before the model's K norm and RoPE: its scale has "
        "nothing to do with what is cached");
}

TEST_CASE("diagnose: K and V share a scale by their form, not because they happen to be equal") {
  ScaleCase equal = of({0.021763394f, 0.021763394f, 0.0597447f, 0.0597447f});
  CHECK(ids_of(equal) == Ids{});
  for (const char* name : {"modelopt", "k_scale/v_scale", "autofp8", "compressed-tensors"}) {
    equal.dialect = find_dialect(name);
    REQUIRE(equal.dialect);
    CHECK(ids_of(equal) == Ids{});
  }
  for (const char* name : {"quark", "quark-fp8", "kv_scale", "trtllm", "vllm-json"}) {
    equal.dialect = find_dialect(name);
    REQUIRE(equal.dialect);
    CHECK(ids_of(equal) == Ids{"kv-fused"});
  }
  ScaleCase apart = of(kSome);
  apart.dialect = find_dialect("quark");
  CHECK(ids_of(apart) == Ids{});
  for (ScaleTensor& tensor : apart.tensors) tensor.of = ScaleOf::both;
  apart.has_cache.assign(2, true);
  CHECK(ids_of(apart) == Ids{"kv-fused"});
}

TEST_CASE("diagnose: of a union only the finer form is looked at") {
  ScaleCase found = of({1, 1, 1, 1});
  found.dialect = find_dialect("kv_scale");
  for (int64_t layer = 0; layer < 2; ++layer) {
    found.tensors.push_back({"b", layer, ScaleOf::both, DType::bf16, {}, {2}, nullptr, ""});
  }
  CHECK(ids_of(found) == Ids{"all-ones", "kv-fused"});
  found.dialect = find_dialect("k_scale/v_scale");
  CHECK(ids_of(found) == Ids{"all-ones"});
}

TEST_CASE("diagnose: observers, FNUZ and sentinels") {
  ScaleCase found = of(kSome);
  found.observer = "minmax";
  CHECK(ids_of(found) == Ids{"moving-average-observer"});
  found.observer = "memoryless_minmax";
  CHECK(ids_of(found) == Ids{"last-batch-observer"});
  found.dialect = find_dialect("autoround");
  CHECK(ids_of(found) == Ids{"last-batch-observer"});
  CHECK(diagnose(found)[0].sentence ==
        "the scales are those of the last calibration batch alone: AutoRound keeps each batch's in "
        "place of those before");
  found.observer = "";
  CHECK(ids_of(found) == Ids{});
  found.dialect = nullptr;
  found.observer = "static_minmax";
  CHECK(ids_of(found) == Ids{});
  found.format = KvFormat::e4m3fnuz;
  CHECK(ids_of(found) == Ids{"doubled-for-fnuz"});
  found.format = KvFormat::e4m3fn;
  found.tensors[2].values = {-1};
  CHECK(ids_of(found) == Ids{"negative-sentinel"});
  found.tensors[2].values = {0};
  CHECK(ids_of(found) == Ids{});
  found.dialect = find_dialect("autofp8");
  CHECK(ids_of(found) == Ids{"autofp8-zero"});
}

TEST_CASE("diagnose: layers without a scale and scales without a layer are counted") {
  ScaleCase found = of(kSome);
  found.has_cache.assign(5, true);
  REQUIRE(ids_of(found) == Ids{"missing-layer"});
  CHECK(diagnose(found)[0].sentence == "3 of 5 layers have no scale: a runtime uses 1 there");
  found.has_cache.assign(1, true);
  REQUIRE(ids_of(found) == Ids{"extra-layer"});
  CHECK(diagnose(found)[0].sentence == "there are scales for layer 1, but the model has 1");
}

TEST_CASE("diagnose: a layer without a cache needs no scale") {
  ScaleCase found = of(kSome);
  found.has_cache = {true, true, false, false};
  CHECK(ids_of(found) == Ids{});
  found.has_cache = {true, true, false, true};
  REQUIRE(ids_of(found) == Ids{"missing-layer"});
  CHECK(diagnose(found)[0].sentence ==
        "1 of 3 layers with a KV cache has no scale: a runtime uses 1 there");
  found.has_cache.assign(4, true);
  found.layers_unclear = true;
  REQUIRE(ids_of(found) == Ids{"missing-layer"});
  CHECK(diagnose(found)[0].sentence ==
        "2 of 4 layers have no scale: a runtime uses 1 there, if the model writes a KV cache "
        "there");
}

}  // namespace
}  // namespace fp8kv
