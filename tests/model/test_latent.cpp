// Latent attention: features that the tests of all families do not cover.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "model/cache/kv_cache.h"
#include "model/parts/sparse/chosen_tokens.h"
#include "policy/make_scales.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

// The cases whose goldens have these logits of transformers.
std::vector<std::string> cases_with(const char* logits) {
  std::vector<std::string> names;
  for (const std::string& name : test::family_cases()) {
    if (test::family_golden(name).has(logits)) names.push_back(name);
  }
  return names;
}

// logit_difference for other logits than the golden's `logits`.
double difference(const test::FamilyModel& model, const char* key,
                  const std::vector<std::vector<float>>& logits) {
  const Json golden = model.golden.at(key);
  std::vector<std::vector<float>> expected, found;
  for (size_t i = 0; i < golden.size(); ++i) {
    const std::vector<double> row = test::numbers_of(golden.value(i));
    expected.emplace_back(row.begin(), row.end());
    found.push_back(logits[static_cast<size_t>(std::stoi(golden.key(i)))]);
  }
  return test::logit_difference(found, expected);
}

KvScales calibrated(const test::FamilyModel& model, Backend& backend, const char* policy) {
  Log log(Verbosity::quiet);
  return make_scales(
      collect_magnitudes({model.checkpoint, model.config, backend}, {model.ids}, log),
      parse_policy(policy), true);
}

}  // namespace

TEST_CASE("latent: logits with an FP8 cache by one scale are those of transformers") {
  const auto backend = make_cpu_backend(2);
  REQUIRE(cases_with("fp8_logits").size() >= 21);
  for (const std::string& name : cases_with("fp8_logits")) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const KvScales scales = calibrated(model, *backend, "amax");
    const auto logits = test::run_model(model.checkpoint, model.config, *backend, model.ids,
                                        {.cache_dtype = DType::f8_e4m3, .scales = &scales});
    CHECK(difference(model, "fp8_logits", logits) < test::kLogitTolerance);
  }
}

TEST_CASE("latent: logits with fp8_ds_mla are those of transformers, in one step or in many") {
  const auto backend = make_cpu_backend(2);
  REQUIRE(cases_with("blocks_logits").size() >= 3);
  for (const std::string& name : cases_with("blocks_logits")) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const auto at_once = test::run_model(model.checkpoint, model.config, *backend, model.ids,
                                         {.cache_dtype = CacheType(KvFormat::ds_mla)});
    CHECK(difference(model, "blocks_logits", at_once) < test::kLogitTolerance);
    const auto in_steps =
        test::run_model(model.checkpoint, model.config, *backend, model.ids,
                        {.cache_dtype = CacheType(KvFormat::ds_mla), .chunk = 1, .prompt = 16});
    CHECK(difference(model, "blocks_logits", in_steps) < test::kLogitTolerance);
    // These logits differ from those of one scale, and from those of an exact cache.
    CHECK(test::logit_difference(model, at_once) > 5 * test::kLogitTolerance);
    CHECK(difference(model, "fp8_logits", at_once) > 5 * test::kLogitTolerance);
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

TEST_CASE("latent: fp8_ds_mla is 656 bytes a token where the latent has 512 elements") {
  const auto backend = make_cpu_backend(1);
  const test::FamilyModel model("deepseek-v3-blocks");
  const KvCache cache(*backend, model.config, {.dtype = CacheType(KvFormat::ds_mla), .n_pages = 2},
                      nullptr);
  CHECK(cache.bytes() == 3 * 2 * kPageSize * (128 + 4 + 2 * 8));
  const PagedKv kv = cache.layer(1);
  CHECK(kv.k_format == KvFormat::ds_mla);
  CHECK(kv.v == kv.k);
  CHECK(kv.k_scale == nullptr);
  ModelDescription like = model.config;
  for (LayerDescription& layer : like.layers) {
    layer.v_head_dim = 512;
    layer.k_head_dim = 576;
  }
  CHECK(kv_bytes_per_token(like, CacheType(KvFormat::ds_mla)) == 3 * 656);
  CHECK(kv_bytes_per_token(like, DType::f8_e4m3) == 3 * 576);
  CHECK(can_hold(like, KvFormat::ds_mla));
  like.layers[1].v_head_dim = 500;
  CHECK_FALSE(can_hold(like, KvFormat::ds_mla));
  CHECK_FALSE(can_hold(test::FamilyModel("llama-seven").config, KvFormat::ds_mla));
}

TEST_CASE("sparse attention: the cache has keys of the indexer where it leaves out tokens") {
  const auto backend = make_cpu_backend(1);
  const test::FamilyModel model("deepseek-v32");
  REQUIRE(model.config.indexer);
  CHECK(model.config.indexer->top_k == 16);
  CHECK(model.config.max_seq_len == 64);
  const test::FamilyModel wide("deepseek-v32-tied");  // chooses more tokens than its context has
  CHECK_FALSE(wide.config.indexer);
  // Runtimes take 8 codes and a scale for a key. Here it has the model's dtype.
  CHECK(kv_bytes_per_token(model.config, DType::f8_e4m3) == 3 * (30 + 12));
  CHECK(kept_bytes_per_token(model.config, DType::f8_e4m3) == 3 * (30 + 8 * 4));
  CHECK(kept_bytes_per_token(wide.config, DType::f8_e4m3) == 3 * 30);
  const KvCache cache(*backend, model.config, {.dtype = DType::f8_e4m3, .n_pages = 2}, nullptr);
  CHECK(cache.bytes() == 2 * kPageSize * kept_bytes_per_token(model.config, DType::f8_e4m3));
  const PagedKv keys = cache.index_keys(1);
  CHECK(keys.head_dim == 8);
  CHECK(keys.v_in_k == 2);
  CHECK(keys.k_format == KvFormat::f32);
}

TEST_CASE("sparse attention: a layer without an indexer reuses the choice, and has no keys") {
  const auto backend = make_cpu_backend(1);
  const test::FamilyModel model("glm-moe-dsa-shared");
  const KvCache cache(*backend, model.config, {.n_pages = 1}, nullptr);
  CHECK(cache.index_keys(0).k != nullptr);
  CHECK(cache.index_keys(1).k == nullptr);
  CHECK(cache.index_keys(2).k != nullptr);
  // Windows go through layer after layer, so the choice of every row has to be kept.
  const ChosenTokens kept(*backend, model.config,
                          {.most_rows = 4, .all_rows = 9, .max_positions = 40});
  CHECK(kept.bytes() == 9 * 11 * 4);
  CHECK(kept.rows(3, 4).data == kept.rows(0, 9).data + 3 * 11 * 4);
  const test::FamilyModel each("deepseek-v32");  // every layer chooses for itself
  const ChosenTokens some(*backend, each.config,
                          {.most_rows = 4, .all_rows = 9, .max_positions = 40});
  CHECK(some.bytes() == 4 * 16 * 4);
  CHECK(some.rows(3, 4).data == some.rows(0, 4).data);
  const ChosenTokens none(*backend, each.config,
                          {.most_rows = 4, .all_rows = 9, .max_positions = 16});
  CHECK(none.bytes() == 0);
  CHECK(none.rows(0, 4).data == nullptr);
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
