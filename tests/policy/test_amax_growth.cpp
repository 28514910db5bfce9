#include <cmath>

#include <doctest/doctest.h>

#include "policy/amax_growth.h"

namespace fp8kv {
namespace {

// Two layers of two heads, the second without a cache.
AmaxAfter after(uint64_t tokens, LayerAmax first) {
  return {tokens, {std::move(first), {}}};
}

TEST_CASE("amax growth: that of the layer is of its largest head, that of heads of any") {
  const AmaxAfter half = after(100, {{8, 1}, {4, 4}, {1, 1}});
  const AmaxAfter all = after(200, {{9, 2}, {4, 4}, {50, 50}});  // Q has no scale
  const AmaxGrowth of_layer = amax_growth(half, all, GrowthOf::layer);
  CHECK(of_layer.share == doctest::Approx(0.125));
  CHECK(of_layer.octaves() == doctest::Approx(0.169925));  // log2(9 / 8)
  CHECK(of_layer.where() == "layer 0 K");
  CHECK(amax_growth(half, all, GrowthOf::head).octaves() == doctest::Approx(1));
  CHECK(amax_growth(all, all, GrowthOf::head).share == 0);
}

TEST_CASE("amax growth: it counts by doublings of the text, and has no bound from 0") {
  const AmaxAfter all = after(800, {{8, 8}, {4, 4}, {1, 1}});
  const AmaxGrowth slow = amax_growth(after(100, {{8, 8}, {1, 2}, {1, 1}}), all, GrowthOf::layer);
  CHECK(slow.octaves() == doctest::Approx(1.0 / 3));  // from 2 to 4 in three doublings
  CHECK(slow.where() == "layer 0 V");
  const AmaxGrowth from_0 = amax_growth(after(400, {{0, 0}, {4, 4}, {1, 1}}), all, GrowthOf::layer);
  CHECK(std::isinf(from_0.share));
  CHECK(from_0.where() == "layer 0 K");
}

}  // namespace
}  // namespace fp8kv
