#include <string>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "jinja/values/runtime.h"
#include "jinja/values/text_search.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

std::string random_text(Rng& rng, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += "ab"[rng.next() % 8 == 0 ? 1 : 0];
  return text;
}

}  // namespace

TEST_CASE("text search: finds what std::string finds, from both sides, for short and long parts") {
  jinja::Runtime runtime("t", {}, [] { return int64_t{0}; });
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_text(rng, rng.next() % 90);
    const std::string part = random_text(rng, rng.next() % 24);
    const jinja::TextSearch search(runtime, text, part);
    for (size_t at = 0; at <= text.size() + 1; ++at) {
      CHECK(search.find(at) == text.find(part, at));
      const size_t end = std::min(at, text.size());
      const size_t last =
          part.size() > end ? std::string::npos : text.rfind(part, end - part.size());
      CHECK(search.find_last(at) == last);
    }
  }
}

TEST_CASE("text search: a part that almost fits everywhere is looked for in linear time") {
  jinja::Runtime runtime("t", {}, [] { return int64_t{0}; });
  // A search that compares at each place would read 10^14 bytes.
  const std::string text(size_t{1} << 24, 'a'), half(size_t{1} << 23, 'a');
  const std::string behind = half + "b", before = "b" + half;
  CHECK(jinja::TextSearch(runtime, text, behind).find(0) == std::string::npos);
  CHECK(jinja::TextSearch(runtime, text, before).find_last(text.size()) == std::string::npos);
}

TEST_CASE("text search: both texts cost steps") {
  jinja::Runtime runtime("t", {.steps = 1000}, [] { return int64_t{0}; });
  const std::string text(12'000, 'a'), part(6000, 'a');
  CHECK(test::error_of([&] {
          jinja::TextSearch(runtime, text, part);
        }).ends_with("takes more than 1,000 steps"));
}

}  // namespace fp8kv
