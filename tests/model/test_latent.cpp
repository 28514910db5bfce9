// Latent attention: what of it the tests of all families do not ask.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "model/kv_cache.h"
#include "policy/make_scales.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

std::vector<std::string> latent_cases() {
  std::vector<std::string> names;
  for (const std::string& name : test::family_cases()) {
    if (test::family_golden(name).has("fp8_logits")) names.push_back(name);
  }
  return names;
}

KvScales calibrated(const test::FamilyModel& model, Backend& backend, const char* policy) {
  Log log(Verbosity::quiet);
  return make_scales(collect_magnitudes(model.checkpoint, model.config, backend, {model.ids}, log),
                     parse_policy(policy), true);
}

}  // namespace

TEST_CASE("latent: logits with an FP8 cache by one scale are those of transformers") {
  const auto backend = make_cpu_backend(2);
  REQUIRE(latent_cases().size() >= 10);
  for (const std::string& name : latent_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const KvScales scales = calibrated(model, *backend, "amax");
    const auto logits = test::run_model(model.checkpoint, model.config, *backend, model.ids,
                                        {.cache_dtype = DType::f8_e4m3, .scales = &scales});
    const Json golden = model.golden.at("fp8_logits");
    std::vector<std::vector<float>> expected, found;
    for (size_t i = 0; i < golden.size(); ++i) {
      const std::vector<double> row = test::numbers_of(golden.value(i));
      expected.emplace_back(row.begin(), row.end());
      found.push_back(logits[static_cast<size_t>(std::stoi(golden.key(i)))]);
    }
    CHECK(test::logit_difference(found, expected) < test::kLogitTolerance);
  }
}

TEST_CASE("latent: K and V have one scale, the larger amax of the two parts / 448, by any policy") {
  const auto backend = make_cpu_backend(2);
  const test::FamilyModel model("deepseek-v3");
  for (const char* policy : {"amax", "head", "shared", "mse", "p99.90"}) {
    CAPTURE(std::string(policy));
    const KvScales scales = calibrated(model, *backend, policy);
    CHECK(scales.latent);
    for (const LayerScales& layer : scales.layers) CHECK(layer.k == layer.v);
  }
  const KvScales amax = calibrated(model, *backend, "amax");
  for (size_t i = 0; i < amax.layers.size(); ++i) {
    const LayerAmax& seen = amax.provenance.amax[i];
    CHECK(seen.k != seen.v);
    CHECK(amax.layers[i].k[0] == std::max(seen.k[0], seen.v[0]) / 448);
  }
}

TEST_CASE("latent: the cache is one pool, of rope_dim + rank elements a token") {
  const auto backend = make_cpu_backend(1);
  const test::FamilyModel model("deepseek-v3");
  const KvCache cache(*backend, model.config, {.dtype = DType::f8_e4m3, .n_pages = 2}, nullptr);
  CHECK(cache.bytes() == 3 * 2 * kPageSize * 30);
  const PagedKv kv = cache.layer(1);
  CHECK(kv.head_dim == 30);
  CHECK(kv.v_in_k == 24);
  CHECK(static_cast<std::byte*>(kv.v) - static_cast<std::byte*>(kv.k) == 6);
}

TEST_CASE("latent: scales that differ for K and V are refused") {
  const auto backend = make_cpu_backend(1);
  const test::FamilyModel model("deepseek-v3");
  KvScales scales = calibrated(model, *backend, "amax");
  CHECK_NOTHROW(check_fits(scales, model.config, "these"));
  scales.layers[1] = {{0.5f}, {0.25f}};
  CHECK(test::error_of([&] { check_fits(scales, model.config, "these"); }) ==
        "these: layer 1: the scale of K is 0.5 and that of V 0.25, but this model caches one "
        "latent vector, which has one scale for both");
  CHECK(test::error_of([&] { check_values(scales, "these"); }) ==
        "these: layer 1: K has the scale 0.5 and V 0.25, expected one for both, since the cache "
        "is a latent vector");
}

}  // namespace fp8kv
