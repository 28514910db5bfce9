#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "model/cache/page_pool.h"

namespace fp8kv {
namespace {

using Pages = std::vector<int32_t>;

// Tokens `from`, `from` + 1 and so on, for `count` pages of 4.
std::vector<int32_t> tokens_from(int32_t from, int count) {
  std::vector<int32_t> tokens(static_cast<size_t>(4 * count));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

// Takes pages for a prompt and publishes them.
Pages put(PagePool& pool, const std::vector<int32_t>& tokens) {
  Pages pages;
  for (size_t i = 0; i < tokens.size() / 4; ++i) pages.push_back(pool.take());
  pool.publish(tokens, pages);
  return pages;
}

void release(PagePool& pool, const Pages& pages) {
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) pool.release(*page);
}

TEST_CASE("page_pool: pages are found by the tokens in them and before them") {
  PagePool pool(8, 4);
  const Pages pages = put(pool, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(pool.find(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}) == pages);
  CHECK(pool.find(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7}) == Pages{pages[0]});
  CHECK(pool.find(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 9}) == Pages{pages[0]});
  CHECK(pool.find(std::vector<int32_t>{5, 6, 7, 8}).empty());
  CHECK(pool.find(std::vector<int32_t>{1, 2, 3}).empty());
}

TEST_CASE("page_pool: equal hashes do not make tokens equal") {
  PagePool pool(8, 4, [](uint64_t, std::span<const int32_t>) { return uint64_t{7}; });
  const Pages a = put(pool, tokens_from(0, 2)), b = put(pool, tokens_from(100, 2));
  CHECK(pool.find(tokens_from(0, 2)) == a);
  CHECK(pool.find(tokens_from(100, 2)) == b);
  CHECK(pool.find(tokens_from(50, 2)).empty());
  // A second page behind another first one.
  std::vector<int32_t> mixed = tokens_from(0, 1);
  const std::vector<int32_t> second = tokens_from(104, 1);
  mixed.insert(mixed.end(), second.begin(), second.end());
  CHECK(pool.find(mixed) == Pages{a[0]});
  release(pool, a);
  release(pool, b);
  CHECK(pool.available() == 8);
}

TEST_CASE("page_pool: pages stay while somebody uses them, and are kept until they are needed") {
  PagePool pool(3, 4);
  const Pages a = put(pool, tokens_from(0, 2));
  for (const int32_t page : a) pool.share(page);
  release(pool, a);
  CHECK(pool.available() == 1);
  release(pool, a);
  CHECK(pool.available() == 3);
  CHECK(pool.find(tokens_from(0, 2)) == a);
  // take() gives the free page first, then the end of the kept pages.
  const int32_t fresh = pool.take();
  CHECK(pool.find(tokens_from(0, 2)) == a);
  CHECK(pool.take() == a[1]);
  CHECK(pool.find(tokens_from(0, 2)) == Pages{a[0]});
  CHECK(pool.take() == a[0]);
  CHECK(pool.find(tokens_from(0, 2)).empty());
  CHECK(pool.available() == 0);
  release(pool, {fresh, a[0], a[1]});
  CHECK(pool.available() == 3);
}

TEST_CASE("page_pool: what was used least recently goes first") {
  PagePool pool(3, 4);
  const Pages a = put(pool, tokens_from(0, 1)), b = put(pool, tokens_from(100, 1)),
              c = put(pool, tokens_from(200, 1));
  release(pool, a);
  release(pool, b);
  release(pool, c);
  pool.share(a[0]);
  release(pool, a);
  CHECK(pool.take() == b[0]);
  CHECK(pool.take() == c[0]);
  CHECK(pool.find(tokens_from(0, 1)) == a);
}

TEST_CASE("page_pool: a page never passes for what was in its place before") {
  PagePool pool(2, 4);
  const Pages a = put(pool, tokens_from(0, 2));
  // The first page goes while the second is in use by itself: no chain may lead to the second any
  // more.
  pool.release(a[0]);
  CHECK(pool.take() == a[0]);
  pool.publish(tokens_from(300, 1), Pages{a[0]});
  std::vector<int32_t> mixed = tokens_from(300, 1);
  const std::vector<int32_t> second = tokens_from(4, 1);
  mixed.insert(mixed.end(), second.begin(), second.end());
  CHECK(pool.find(mixed) == Pages{a[0]});
  CHECK(pool.find(tokens_from(0, 2)).empty());
}

TEST_CASE("page_pool: of two that fill the same page the first is found, and both are given back") {
  PagePool pool(4, 4);
  const Pages a = put(pool, tokens_from(0, 2));
  const Pages b = put(pool, tokens_from(0, 2));
  CHECK(pool.find(tokens_from(0, 2)) == a);
  release(pool, b);
  release(pool, a);
  CHECK(pool.available() == 4);
}

}  // namespace
}  // namespace fp8kv
