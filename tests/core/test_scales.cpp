#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/text.h"
#include "core/numbers/half.h"
#include "core/scales/scales.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

constexpr const char* kValueHelp =
    "a scale of 0 or below means 'missing' or undefined to every runtime; calibrate again or "
    "repair the source";

KvScales two_layers() {
  KvScales scales;
  scales.model_type = "llama";
  scales.n_kv_heads = 2;
  scales.layers = {{{0.5f, 0.25f}, {1.0f, 2.0f}}, {{0.125f, 3.0f}, {0.75f, 0.0625f}}};
  return scales;
}

ModelDescription model_of(int64_t n_layers, int64_t n_kv_heads) {
  ModelDescription model;
  model.model_type = "llama";
  for (int64_t i = 0; i < n_layers; ++i) {
    model.layers.push_back({Mixing::full, 0, n_kv_heads, 8, 8, i});
  }
  return model;
}

// The published values are f32(a) * f32(1/448) for FP16 maxima a. For each there is an FP16 number
// that gives it by this product. Dividing that number by 448 gives the same value or its neighbour.
TEST_CASE("scales: published scale files are reproduced but for the last place") {
  const auto path = test::shared_data("kv-scales/vllm-llama2-7b.kv_cache_scales.json");
  if (!path) return;
  const Json layers = Json::read(*path).at("kv_cache").at("scaling_factor").at("0");
  REQUIRE(layers.size() == 32);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto published = static_cast<float>(layers.value(layer).as_double());
    const float amax = f16_to_float(f16_from_float(published * 448.0f));
    INFO("layer ", layer, ", amax ", amax);
    CHECK(amax * (1.0f / 448.0f) == published);
    const float scale = scale_from_amax(amax, KvFormat::e4m3fn, 1.0);
    CHECK(std::nextafter(scale, published) == published);
  }
}

// Compares with an 80-bit quotient: no other float is nearer.
TEST_CASE("scales: amax / 448, correctly rounded") {
  Rng rng(11);
  int apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto amax = static_cast<float>(std::ldexp(rng.uniform() + 0.5, i % 60 - 30));
    const float scale = scale_from_amax(amax, KvFormat::e4m3fn, 1.0);
    const long double exact = static_cast<long double>(amax) / 448;
    const auto error = [&](float value) {
      return std::abs(static_cast<long double>(value) - exact);
    };
    REQUIRE(error(scale) <= error(std::nextafter(scale, 0.0f)));
    REQUIRE(error(scale) <= error(std::nextafter(scale, 1e38f)));
    apart += scale != amax * (1.0f / 448.0f);
  }
  CHECK(apart > 8000);  // AMMO's product often differs from the quotient
}

TEST_CASE("scales: an amax of 0 gives 1, whatever the headroom, and 2 for fnuz") {
  CHECK(scale_from_amax(0.0f, KvFormat::e4m3fn, 1.0) == 1.0f);
  CHECK(scale_from_amax(0.0f, KvFormat::e4m3fn, 1.25) == 1.0f);
  CHECK(scale_from_amax(0.0f, KvFormat::e5m2, 1.0) == 1.0f);
  CHECK(scale_from_amax(0.0f, KvFormat::e4m3fnuz, 1.0) == 2.0f);
}

TEST_CASE("scales: headroom multiplies, and fnuz is twice fn exactly") {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const auto amax = static_cast<float>(std::ldexp(rng.uniform() + 0.5, i % 40 - 20));
    const float plain = scale_from_amax(amax, KvFormat::e4m3fn, 1.0);
    CHECK(scale_from_amax(amax, KvFormat::e4m3fn, 1.25) == plain * 1.25f);
    CHECK(scale_from_amax(amax, KvFormat::e4m3fnuz, 1.25) == 2 * (plain * 1.25f));
    CHECK(scale_from_amax(amax, KvFormat::e5m2, 1.0) == amax / 57344.0f);
  }
}

TEST_CASE("scales: to fnuz and back is the same, bit for bit") {
  const KvScales fn = two_layers();
  const KvScales fnuz = with_format(fn, KvFormat::e4m3fnuz);
  CHECK(fnuz.format == KvFormat::e4m3fnuz);
  CHECK(fnuz.layers[0].k == std::vector<float>{1.0f, 0.5f});
  CHECK(fnuz.layers[1].v == std::vector<float>{1.5f, 0.125f});
  CHECK(with_format(fnuz, KvFormat::e4m3fn) == fn);
  CHECK(with_format(fn, KvFormat::e4m3fn) == fn);
}

TEST_CASE("scales: no factor relates E4M3 and E5M2") {
  CHECK(test::error_of([] { with_format(two_layers(), KvFormat::e5m2); }) ==
        "scales made for float8_e4m3fn cannot serve float8_e5m2");
}

TEST_CASE("scales: per_tensor takes the maximum over heads") {
  const KvScales reduced = per_tensor(two_layers());
  CHECK(two_layers().per_head());
  CHECK_FALSE(reduced.per_head());
  CHECK(reduced.layers[0] == LayerScales{{0.5f}, {2.0f}});
  CHECK(reduced.layers[1] == LayerScales{{3.0f}, {0.75f}});
  CHECK(reduced.n_kv_heads == 2);
}

TEST_CASE("scales: a value no runtime can use is named with its layer and head") {
  struct Case {
    float value;
    const char* found;
  };
  for (const Case& bad :
       {Case{0.0f, "0"}, Case{-0.5f, "-0.5"}, Case{std::numeric_limits<float>::quiet_NaN(), "NaN"},
        Case{std::numeric_limits<float>::infinity(), "inf"}, Case{0x1p-130f, "7.34684e-40"}}) {
    KvScales scales = two_layers();
    scales.layers[1].v[0] = bad.value;
    try {
      check_values(scales, "'s.json'");
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.what() == cat("'s.json': layer 1: the V scale of head 0 is ", bad.found,
                                ", expected a positive, finite, normal number"));
      CHECK(error.help() == kValueHelp);
      CHECK(error.kind() == ErrorKind::input);
    }
  }
}

TEST_CASE("scales: where there is one scale for all heads, no head is named") {
  KvScales scales = per_tensor(two_layers());
  scales.layers[0].k[0] = 0;
  CHECK(test::error_of([&] { check_values(scales, "'s.json'"); }) ==
        "'s.json': layer 0: the K scale is 0, expected a positive, finite, normal number");
}

TEST_CASE("scales: layers of different shape are refused") {
  KvScales scales = two_layers();
  scales.layers[1].v.pop_back();
  CHECK(test::error_of([&] { check_values(scales, "'s.json'"); }) ==
        "'s.json': layer 1: has 2 K and 1 V scales, expected 2 of each");
  scales.layers.clear();
  CHECK(test::error_of([&] { check_values(scales, "'s.json'"); }) == "'s.json': has no layers");
}

TEST_CASE("scales: those of another model are refused") {
  const KvScales scales = two_layers();
  CHECK_NOTHROW(check_fits(scales, model_of(2, 2), "'s.json'"));
  CHECK(test::error_of([&] { check_fits(scales, model_of(32, 2), "'s.json'"); }) ==
        "'s.json': is for 2 layers, the model has 32");
  CHECK(test::error_of([&] { check_fits(scales, model_of(2, 8), "'s.json'"); }) ==
        "'s.json': has scales for 2 KV heads, the model has 8");
  ModelDescription qwen = model_of(2, 2);
  qwen.model_type = "qwen2";
  CHECK(test::error_of([&] { check_fits(scales, qwen, "'s.json'"); }) ==
        "'s.json': is for model_type 'llama', the model is 'qwen2'");
}

TEST_CASE("scales: a source that does not say how many KV heads fits any number") {
  KvScales scales = per_tensor(two_layers());
  scales.n_kv_heads = 0;
  scales.model_type = "";
  CHECK_NOTHROW(check_fits(scales, model_of(2, 8), "'s.json'"));
}

// A model where the second of three layers writes no cache.
KvScales with_a_gap() {
  KvScales scales = two_layers();
  scales.layers.insert(scales.layers.begin() + 1, LayerScales{});
  return scales;
}

TEST_CASE("scales: a layer without a cache stays without one, and others are what they were") {
  const KvScales scales = with_a_gap();
  CHECK(scales.per_head());
  CHECK(scales.scales_per_layer() == 2);
  CHECK(scales.cached_layers() == 2);
  CHECK_NOTHROW(check_values(scales, "'s.json'"));
  const KvScales reduced = per_tensor(scales), dense = per_tensor(two_layers());
  CHECK(reduced.layers == std::vector<LayerScales>{dense.layers[0], {}, dense.layers[1]});
  CHECK(with_format(scales, KvFormat::e4m3fnuz).layers[1] == LayerScales{});
  KvScales other = scales;
  other.layers[1] = other.layers[0];
  CHECK_FALSE(other == scales);
}

TEST_CASE("scales: K without V, and no cache at all, are refused") {
  KvScales scales = with_a_gap();
  scales.layers[1].k = {1, 1};
  CHECK(test::error_of([&] { check_values(scales, "'s.json'"); }) ==
        "'s.json': layer 1: has 2 K and 0 V scales, expected 2 of each");
  scales.layers.assign(3, {});
  CHECK(test::error_of([&] { check_values(scales, "'s.json'"); }) ==
        "'s.json': has no layer with a KV cache");
  CHECK(scales.scales_per_layer() == 0);
}

TEST_CASE("scales: the layers that have scales must be those that write a cache") {
  const auto check = [](const std::vector<bool>& has_cache, const KvScales& scales) {
    ModelDescription model = model_of(static_cast<int64_t>(has_cache.size()), 2);
    for (size_t layer = 0; layer < has_cache.size(); ++layer) {
      if (!has_cache[layer]) model.layers[layer] = {.mixing = Mixing::recurrent};
    }
    check_fits(scales, model, "'s'");
  };
  const auto error_with = [&](const std::vector<bool>& has_cache, const KvScales& scales) {
    return test::error_of([&] { check(has_cache, scales); });
  };
  CHECK_NOTHROW(check({true, false, true}, with_a_gap()));
  CHECK(error_with({true, true, true}, with_a_gap()) ==
        "'s': has no scales for layer 1, where the model writes a KV cache");
  CHECK(error_with({false, true, false}, with_a_gap()) ==
        "'s': has no scales for layer 1, where the model writes a KV cache");
  CHECK(error_with({false, false, true}, with_a_gap()) ==
        "'s': has scales for layer 0, where the model writes no KV cache");
  CHECK(error_with({true, false}, with_a_gap()) == "'s': is for 3 layers, the model has 2");
  // A source may omit the last layers if they write no cache.
  CHECK_NOTHROW(check({true, false, true, false, false}, with_a_gap()));
  CHECK(error_with({true, false, true, false, true}, with_a_gap()) ==
        "'s': has no scales for layer 4, where the model writes a KV cache");
}

TEST_CASE("scales: where the layers are not known, none may be without scales") {
  ModelDescription model = model_of(3, 2);
  for (LayerDescription& layer : model.layers) layer.mixing = Mixing::unknown;
  model.unclear = Error("'config.json': block_types: not known", "the way out");
  KvScales scales = with_a_gap();
  CHECK(test::error_of([&] { check_fits(scales, model, "'s'"); }) ==
        "'s': has no scales for layer 1, and which layers of the model write a KV cache is not "
        "known: 'config.json': block_types: not known");
  CHECK(test::help_of([&] { check_fits(scales, model, "'s'"); }) == "the way out");
  scales.layers[1] = scales.layers[0];
  CHECK_NOTHROW(check_fits(scales, model, "'s'"));
}

}  // namespace
}  // namespace fp8kv
