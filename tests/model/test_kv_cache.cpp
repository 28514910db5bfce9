#include <set>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "model/cache/kv_cache.h"
#include "support/models/tiny_checkpoint.h"

using namespace fp8kv;

TEST_CASE("kv_cache: a full last page opens a new one, a page that has room does not") {
  const auto backend = make_cpu_backend(1);
  KvCache cache(*backend, test::model_of(test::tiny_config()), {DType::f16, 3}, nullptr);
  KvCache::Sequence sequence;
  CHECK(cache.extend(sequence, 63));
  CHECK(cache.free_pages() == 2);
  CHECK(cache.extend(sequence, 1));
  CHECK(cache.free_pages() == 2);
  CHECK(cache.extend(sequence, 1));
  CHECK(cache.free_pages() == 1);
}

TEST_CASE("kv_cache: what does not fit changes nothing") {
  const auto backend = make_cpu_backend(1);
  KvCache cache(*backend, test::model_of(test::tiny_config()), {DType::f16, 2}, nullptr);
  KvCache::Sequence sequence;
  CHECK(cache.extend(sequence, 10));
  CHECK_FALSE(cache.extend(sequence, 119));
  CHECK(sequence.tokens == 10);
  CHECK(cache.free_pages() == 1);
  CHECK(cache.extend(sequence, 118));
}

TEST_CASE("kv_cache: sequences never share a slot, and released pages come back") {
  const auto backend = make_cpu_backend(1);
  KvCache cache(*backend, test::model_of(test::tiny_config()), {DType::f16, 4}, nullptr);
  KvCache::Sequence a, b;
  std::set<int32_t> slots;
  for (int i = 0; i < 100; ++i) {
    for (KvCache::Sequence* sequence : {&a, &b}) {
      REQUIRE(cache.extend(*sequence, 1));
      slots.insert(KvCache::slot(*sequence, sequence->tokens - 1));
    }
  }
  CHECK(slots.size() == 200);
  CHECK(*slots.rbegin() < 4 * kPageSize);
  cache.release(a);
  CHECK(cache.free_pages() == 2);
}

TEST_CASE("kv_cache: layers have memory of their own shape, or that of the layer they read") {
  ModelConfig config = test::model_of(test::tiny_config());
  config.layers.resize(4, config.layers[0]);
  config.layers[1].k_head_dim = config.layers[1].v_head_dim = 24;
  config.layers[1].cache_of = config.layers[2].cache_of = 1;
  config.layers[3] = {.mixing = Mixing::none};
  const auto backend = make_cpu_backend(1);
  const int64_t heads = config.layers[0].n_kv_heads, size = config.layers[0].k_head_dim;
  const uint64_t tokens = 3 * kPageSize;

  const KvCache all(*backend, config, {DType::f16, 3}, nullptr);
  CHECK(all.bytes() == tokens * 2 * 2 * static_cast<uint64_t>(heads * (size + 24)));
  CHECK(all.layer(0).head_dim == size);
  CHECK(all.layer(1).head_dim == 24);
  CHECK(all.layer(2).k == all.layer(1).k);
  CHECK(all.layer(2).head_dim == 24);
  CHECK(all.layer(1).k != all.layer(0).k);
  CHECK(all.layer(3).k == nullptr);

  // A layer that lends its cache does not take turns.
  config.layers.push_back(config.layers[0]);
  config.layers[4].cache_of = 4;
  const KvCache in_turn(*backend, config, {DType::f16, 3, 0, CacheMemory::in_turn}, nullptr);
  CHECK(in_turn.layer(4).k == in_turn.layer(0).k);
  CHECK(in_turn.layer(1).k != in_turn.layer(0).k);
  CHECK(in_turn.bytes() == all.bytes());

  const KvCache none(*backend, config, {DType::f16, 3, 0, CacheMemory::none}, nullptr);
  CHECK(none.bytes() == 0);
  CHECK(none.free_pages() == 3);
}
