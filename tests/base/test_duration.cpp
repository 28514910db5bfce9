#include <doctest/doctest.h>

#include "base/duration.h"

namespace fp8kv {
namespace {

TEST_CASE("duration: two units at most, rounded to seconds") {
  CHECK(duration(0.4) == "0 s");
  CHECK(duration(59.4) == "59 s");
  CHECK(duration(59.6) == "1 min 0 s");
  CHECK(duration(845) == "14 min 5 s");
  CHECK(duration(7384) == "2 h 3 min");
}

}  // namespace
}  // namespace fp8kv
