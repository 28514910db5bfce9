#include <set>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "model/kv_cache.h"
#include "support/models/tiny_checkpoint.h"

using namespace fp8kv;

TEST_CASE("kv_cache: a full last page opens a new one, a page that has room does not") {
  const auto backend = make_cpu_backend(1);
  KvCache cache(*backend, test::model_of(test::tiny_config()), {DType::f16, 1, 3}, nullptr);
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
  KvCache cache(*backend, test::model_of(test::tiny_config()), {DType::f16, 1, 2}, nullptr);
  KvCache::Sequence sequence;
  CHECK(cache.extend(sequence, 10));
  CHECK_FALSE(cache.extend(sequence, 119));
  CHECK(sequence.tokens == 10);
  CHECK(cache.free_pages() == 1);
  CHECK(cache.extend(sequence, 118));
}

TEST_CASE("kv_cache: sequences never share a slot, and released pages come back") {
  const auto backend = make_cpu_backend(1);
  KvCache cache(*backend, test::model_of(test::tiny_config()), {DType::f16, 1, 4}, nullptr);
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
