#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "text/stop_text.h"

namespace fp8kv {
namespace {

// Cuts by looking at the whole text. Finds the stop that ends first, and of several that end there
// the longest. Cuts where that stop begins.
std::string cut(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 0; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

std::string random_text(Rng& rng, size_t size) {
  std::string text;
  while (text.size() < size) text += static_cast<char>('a' + rng.next() % 2);
  return text;
}

TEST_CASE("stop_text: what is shown is the text before the stop that ends first") {
  Rng rng(1);
  size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (uint64_t i = rng.next() % 4; i > 0; --i) {
      stops.push_back(random_text(rng, 1 + rng.next() % 6));
    }
    const std::string text = random_text(rng, rng.next() % 40);
    const std::string expected = cut(text, stops);
    CAPTURE(text);
    StopText stop(stops);
    std::string shown;
    for (size_t at = 0; at < text.size() && !stop.found();) {
      const size_t size = 1 + rng.next() % 5;
      shown += stop.add(std::string_view(text).substr(at, size));
      at += size;
      REQUIRE(expected.starts_with(shown));
    }
    shown += stop.finish();
    REQUIRE(shown == expected);
    REQUIRE(stop.found() == (expected != text));
    found += stop.found() ? 1 : 0;
  }
  CHECK(found > 1000);
  CHECK(found < 2900);
}

TEST_CASE("stop_text: nothing is held back that cannot begin a stop") {
  StopText stop({"\n\nuser:"});
  CHECK(stop.add("London\n") == "London");
  CHECK(stop.add("is") == "\nis");
  CHECK(stop.add(".\n\nus") == ".");
  CHECK_FALSE(stop.found());
  CHECK(stop.add("er: and more") == "");
  CHECK(stop.found());
  CHECK(stop.add("more") == "");
  CHECK(stop.finish() == "");
  StopText none({});
  CHECK(none.add("London\n\nuser:") == "London\n\nuser:");
}

}  // namespace
}  // namespace fp8kv
