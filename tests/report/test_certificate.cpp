#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "policy/make_scales.h"
#include "report/certificate.h"
#include "report/certificate_words.h"
#include "support/magnitudes.h"

namespace fp8kv {
namespace {

using test::counts_of;
using Values = std::vector<float>;

// Scales like calibrate's, for one layer and one KV head.
KvScales scales_of(const Values& k, const Values& v, double headroom = 1) {
  KvScales scales = make_scales({{{counts_of(k)}, {counts_of(k)}, {counts_of(v)}}},
                                amax_policy(ScaleSharing::tensor, headroom));
  scales.n_kv_heads = 1;
  scales.provenance.windows = 10;
  scales.provenance.tokens = 10000;
  return scales;
}

// Normal values by the method of Box and Muller.
Values normal(double sigma, int count, uint64_t seed = 7) {
  Rng rng(seed);
  Values values;
  for (int i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    values.push_back(
        static_cast<float>(sigma * radius * std::cos(6.283185307179586 * rng.uniform())));
  }
  return values;
}

Values with_one(Values values, float more) {
  values.push_back(more);
  return values;
}

LayerCertificate certified(const Values& k, const Values& v, KvFormat format = KvFormat::e4m3fn) {
  return certify(scales_of(k, v), format).layers[0];
}

// A scale is amax / 448 * headroom in f32. Three roundings of at most 2^-24, times log2(e) in its
// logarithm, give 2.6e-7. A scale written in a test has one rounding.
constexpr double kOfScale = 3e-7;
// Logarithms in double are off by a few 2^-52.
constexpr double kOfLogarithm = 1e-15;

const Values kTame = {0.5f, 1, -2, 4, 3, 0.25f};

template <Fp8Format F>
void check_against_codec(const Values& values, float scale, const Margins& margins) {
  size_t nonzero = 0, subnormal = 0, flushed = 0;
  for (const float x : values) {
    if (x == 0) continue;
    ++nonzero;
    const float code = std::fabs(fp8_decode<F>(fp8_encode<F>(x / scale)));
    if (std::fabs(x) / scale < fp8_spec(F).min_normal) ++subnormal;
    if (code == 0) ++flushed;
  }
  const auto all = static_cast<double>(nonzero);
  CHECK(margins.subnormal->least <= static_cast<double>(subnormal) / all);
  CHECK(margins.subnormal->most >= static_cast<double>(subnormal) / all);
  CHECK(margins.flushed->least <= static_cast<double>(flushed) / all);
  CHECK(margins.flushed->most >= static_cast<double>(flushed) / all);
}

TEST_CASE("certificate: shares enclose what the codec does to the values") {
  for (const double sigma : {1e-4, 3e-3, 0.02, 1.0, 90.0}) {
    const Values values = normal(sigma, 20000);
    const KvScales scales = scales_of(values, values);
    const LayerCertificate fn = certify(scales, KvFormat::e4m3fn).layers[0];
    const LayerCertificate fnuz = certify(scales, KvFormat::e4m3fnuz).layers[0];
    const float scale = scales.layers[0].k[0];
    check_against_codec<Fp8Format::e4m3fn>(values, scale, fn.k.in_force);
    check_against_codec<Fp8Format::e4m3fn>(values, 1, fn.k.unit);
    check_against_codec<Fp8Format::e4m3fnuz>(values, 2 * scale, fnuz.k.in_force);
    check_against_codec<Fp8Format::e4m3fnuz>(values, 1, fnuz.k.unit);
    CHECK(fn.k.unit.flushed->least == fn.k.unit.flushed->most);  // 1 is a power of two
  }
}

TEST_CASE("certificate: margins are octaves to the largest code and to full precision") {
  // amax is 28 = 448 / 16. The lower median is 0.5 = 2^-6 * 2^5.
  const LayerCertificate layer = certified({0.25f, 0.5f, 7, 28}, kTame);
  CHECK(*layer.k.unit.saturation == doctest::Approx(4).epsilon(kOfLogarithm));
  CHECK(*layer.k.unit.underflow == 5);
  CHECK(*layer.k.in_force.saturation == doctest::Approx(0).epsilon(kOfScale));
  CHECK(*layer.k.in_force.underflow == doctest::Approx(9).epsilon(kOfScale));  // 1/16 of the scale
  const LayerCertificate fnuz = certified({0.25f, 0.5f, 7, 28}, kTame, KvFormat::e4m3fnuz);
  CHECK(*fnuz.k.unit.saturation == doctest::Approx(std::log2(240.0 / 28)).epsilon(kOfLogarithm));
  CHECK(*fnuz.k.unit.underflow == 6);
  // With twice the scale, codes up to 240 reach 480 / 448 as far, and are as precise near zero.
  CHECK(*fnuz.k.in_force.saturation == doctest::Approx(std::log2(480.0 / 448)).epsilon(kOfScale));
  CHECK(*fnuz.k.in_force.underflow == doctest::Approx(9).epsilon(kOfScale));
}

TEST_CASE("certificate: headroom moves both margins by its octaves") {
  const TensorCertificate tensor =
      certify(scales_of({0.5f, 28}, kTame, 4), KvFormat::e4m3fn).layers[0].k;
  CHECK(*tensor.in_force.saturation == doctest::Approx(2).epsilon(kOfScale));
  CHECK(*tensor.in_force.underflow == doctest::Approx(7).epsilon(kOfScale));
}

TEST_CASE("certificate: ranges as Llama has them are safe without scales") {
  for (const float k_amax : {7.0f, 19.0f, 30.0f}) {
    for (const float v_amax : {0.5f, 3.0f, 10.0f}) {
      const LayerCertificate layer = certified(with_one(normal(k_amax / 12, 5000), k_amax),
                                               with_one(normal(v_amax / 20, 5000), v_amax));
      CHECK(layer.verdict == Verdict::unit_safe);
      CHECK(layer.k.reason == "");
      CHECK(layer.v.reason == "");
    }
  }
}

TEST_CASE("certificate: what goes wrong at 1.0 is named") {
  const auto reason = [](const Values& k) {
    const LayerCertificate layer = certified(k, kTame);
    CHECK(layer.v.verdict == Verdict::unit_safe);
    CHECK(layer.verdict == layer.k.verdict);
    return verdict_name(layer.verdict) + ": " + layer.k.reason;
  };
  // Outlier channels from a bias, like Qwen2's.
  CHECK(reason(with_one(normal(3, 1000), 600)) == "needs its scale: K saturates at 1.0");
  CHECK(reason(with_one(normal(3, 1000), 464)) ==
        "needs its scale: K is close to saturation at 1.0");
  CHECK(reason(with_one(normal(3, 1000), 465)) == "needs its scale: K saturates at 1.0");
  CHECK(reason(with_one(normal(3, 1000), 224.5f)) ==
        "needs its scale: K is close to saturation at 1.0");
  CHECK(reason(with_one(normal(3, 1000), 224)) == "1.0 is safe: ");
  CHECK(reason(normal(0.005, 1000)) == "needs its scale: K underflows at 1.0");
  CHECK(reason(normal(0.02, 1000)) == "1.0 is safe: ");
}

TEST_CASE("certificate: the underflow verdict turns where the median loses a second bit") {
  CHECK(certified({0x1p-7f, 0x1p-7f, 1}, kTame).verdict == Verdict::unit_safe);
  CHECK(certified({0x1.FCp-8f, 0x1.FCp-8f, 1}, kTame).verdict == Verdict::needs_scale);
}

TEST_CASE("certificate: losing a quarter of the values is too much, whatever the median") {
  Values quarter(300, 1.0f), more(299, 1.0f);
  quarter.insert(quarter.end(), 100, 0x1p-12f);
  more.insert(more.end(), 101, 0x1p-12f);
  CHECK(certified(quarter, kTame).verdict == Verdict::unit_safe);
  CHECK(certified(more, kTame).k.reason == "K underflows at 1.0");
}

TEST_CASE("certificate: no scale holds a range of more than E4M3 has") {
  const LayerCertificate layer = certified(kTame, with_one(normal(0.01, 1000), 40000));
  CHECK(layer.verdict == Verdict::keep_16bit);
  CHECK(layer.v.reason == "V has too wide a range");
  CHECK_FALSE(layer.v.holds);
  // 2^14 makes V wide, but the median keeps its precision.
  CHECK(certified(kTame, with_one(Values(100, 1.0f), 0x1p14f)).verdict == Verdict::needs_scale);
}

TEST_CASE("certificate: zeros lose nothing, and a dead tensor is safe") {
  Values sparse(1000, 0.0f);
  sparse.push_back(1.0f);
  CHECK(certified(sparse, kTame).verdict == Verdict::unit_safe);
  const LayerCertificate dead = certified({0, 0, 0}, kTame);
  CHECK(dead.verdict == Verdict::unit_safe);
  CHECK_FALSE(dead.k.unit.saturation.has_value());
  CHECK_FALSE(dead.k.unit.flushed.has_value());
}

TEST_CASE("certificate: FNUZ without scales reaches only 240") {
  const Values values = with_one(normal(3, 1000), 130);
  CHECK(certified(values, kTame).verdict == Verdict::unit_safe);
  CHECK(certified(values, kTame, KvFormat::e4m3fnuz).verdict == Verdict::needs_scale);
}

TEST_CASE("certificate: the head with the least room counts") {
  const auto heads = std::vector{counts_of({1, 448}), counts_of({1, 2})};
  KvScales scales = make_scales({{heads, heads, heads}}, parse_policy("head"));
  scales.layers[0].k = {2.0f, 0.001f};
  const TensorCertificate k = certify(scales, KvFormat::e4m3fn).layers[0].k;
  CHECK(*k.in_force.saturation == doctest::Approx(std::log2(0.224)).epsilon(kOfScale));
  CHECK(*k.in_force.underflow == 5);  // the larger scale, 2, decides
  CHECK_FALSE(k.holds);
  CHECK(*k.amax == 448);
}

TEST_CASE("certificate: scales that lose seen values do not hold") {
  KvScales scales = scales_of({1, 2, 30}, kTame);
  CHECK(certify(scales, KvFormat::e4m3fn).layers_that_do_not_hold().empty());
  CHECK(certify(scales, KvFormat::e4m3fnuz).layers_that_do_not_hold().empty());
  scales.layers[0].k[0] *= 0.5f;
  CHECK(certify(scales, KvFormat::e4m3fn).layers_that_do_not_hold() == std::vector<size_t>{0});
}

TEST_CASE("certificate: layers without a cache have no verdict and are not counted") {
  KvScales scales = scales_of(kTame, kTame);
  const auto with_gap = [](auto& layers) {
    layers.insert(layers.begin(), 2, {});
    layers.push_back(layers[2]);
  };
  with_gap(scales.layers);
  with_gap(scales.provenance.amax);
  with_gap(scales.provenance.octaves);
  const Certificate certificate = certify(scales, KvFormat::e4m3fn);
  CHECK(certificate.layers_with(Verdict::no_cache) == std::vector<size_t>{0, 1});
  CHECK(certificate.layers_that_do_not_hold().empty());
  CHECK(verdict_sentence(certificate) == "1.0 is safe in every layer with a cache");
  scales.layers[3].k[0] = 1e-6f;
  CHECK(certify(scales, KvFormat::e4m3fn).layers_that_do_not_hold() == std::vector<size_t>{3});
  for (LayerAmax& amax : scales.provenance.amax) {
    for (float& most : amax.k) most = 1000;
  }
  CHECK(verdict_sentence(certify(scales, KvFormat::e4m3fn)) ==
        "every layer with a cache needs its scale");
}

TEST_CASE("certificate: without octaves only amax speaks, without amax nothing does") {
  const auto verdict = [](const Values& k, bool amax) {
    KvScales scales = scales_of(k, k);
    scales.provenance.octaves.clear();
    if (!amax) scales.provenance.amax.clear();
    const TensorCertificate tensor = certify(scales, KvFormat::e4m3fn).layers[0].k;
    return verdict_name(tensor.verdict) + ": " + tensor.reason;
  };
  CHECK(verdict({600}, true) == "needs its scale: K saturates at 1.0");
  CHECK(verdict({0.007f}, true) == "needs its scale: K underflows at 1.0");
  CHECK(verdict({8}, true) == "not known: K has no octaves");
  CHECK(verdict({600}, false) == "not known: K has no amax");
}

}  // namespace
}  // namespace fp8kv
