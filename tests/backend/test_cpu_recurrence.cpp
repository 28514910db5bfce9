#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/backends/recurrence_scene.h"

namespace fp8kv {
namespace {

using test::RecurrenceScene;
using test::SceneStep;

struct Named {
  std::string name;
  RecurrenceScene scene;
};

std::vector<Named> scenes() {
  std::vector<Named> all;
  all.push_back({"delta", {}});
  all.push_back({"delta, one head, blocks of columns that are full",
                 {.k_heads = 1, .k_dim = 16, .v_heads = 1, .v_dim = 64, .conv_width = 2}});
  all.push_back({"add", {.update = StateUpdate::add, .conv_bias = true}});
  all.push_back(
      {"add, with what passes it by, and steps within limits",
       {.update = StateUpdate::add, .skip = true, .least_step = 0.5f, .most_step = 0.9f}});
  all.push_back({"add, with gates around the convolution",
                 {.update = StateUpdate::add, .conv_bias = true, .conv_gated = true}});
  all.push_back({"add, with a convolution over every third token",
                 {.update = StateUpdate::add, .dilation = 3, .lengths = {14, 1, 5}}});
  all.push_back({"add, with a convolution that adds its input",
                 {.update = StateUpdate::add, .conv_width = 3, .conv_adds = true}});
  all.push_back({"delta, with a step for each row",
                 {.k_heads = 3, .k_dim = 9, .v_heads = 3, .by_row = true, .most_strength = 2.0f}});
  all.push_back({"delta, with decays that have a least logarithm",
                 {.k_heads = 3, .v_heads = 3, .by_row = true, .least_log_decay = -1.5f}});
  all.push_back({"add, with a rate for each element",
                 {.update = StateUpdate::add, .skip = true, .by_element = true}});
  all.push_back({"add, with a rate for each element of one head",
                 {.update = StateUpdate::add,
                  .k_heads = 1,
                  .k_dim = 16,
                  .v_heads = 1,
                  .v_dim = 70,
                  .by_element = true,
                  .least_step = 0.5f,
                  .most_step = 0.9f}});
  all.push_back({"a long sequence that is not kept",
                 {.k_dim = 32, .lengths = {200}, .slots = {-1}, .n_slots = 1}});
  for (Named& each : all) each.scene.randomise(7);
  return all;
}

TEST_CASE("recur and causal_conv: what double precision gives, on every instruction set") {
  for (const auto& [name, scene] : scenes()) {
    CAPTURE(name);
    const test::ExactRecurrence exact = test::exact_recurrence(scene);
    for (const CpuIsa isa : test::available_isas()) {
      CAPTURE(cpu_isa_name(isa));
      const auto backend = make_cpu_backend(2, isa);
      const auto out = test::run_steps(*backend, scene, {whole_step(scene)});
      test::expect_close(out.recurred, exact.recurred, exact.recurred_allowed);
      test::expect_close(out.convolved, exact.convolved, exact.convolved_allowed);
    }
  }
}

TEST_CASE("recur and causal_conv: how rows are cut into steps changes no bit") {
  RecurrenceScene scene;
  scene.randomise(11);
  const std::vector<SceneStep> one_by_one = [] {
    std::vector<SceneStep> steps;
    for (int64_t i = 0; i < 9; ++i) steps.push_back({{0, i, 1}});
    for (int64_t i = 0; i < 5; ++i) steps.push_back({{2, i, 1}});
    steps.push_back({{1, 0, 1}});
    return steps;
  }();
  const std::vector<SceneStep> together = {
      {{2, 0, 2}, {0, 0, 4}}, {{0, 4, 1}, {1, 0, 1}, {2, 2, 1}}, {{0, 5, 4}, {2, 3, 2}}};
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(cpu_isa_name(isa));
    const auto backend = make_cpu_backend(1, isa), threads = make_cpu_backend(3, isa);
    const auto whole = test::run_steps(*backend, scene, {whole_step(scene)});
    CHECK(test::run_steps(*backend, scene, one_by_one) == whole);
    CHECK(test::run_steps(*threads, scene, together) == whole);
    RecurrenceScene by_row{.k_heads = 4, .by_row = true};
    by_row.randomise(13);
    for (const float least : {0.0f, -1.5f}) {
      by_row.least_log_decay = least;
      CHECK(test::run_steps(*threads, by_row, one_by_one) ==
            test::run_steps(*backend, by_row, {whole_step(by_row)}));
    }
    RecurrenceScene by_element{.update = StateUpdate::add, .skip = true, .by_element = true};
    by_element.randomise(17);
    CHECK(test::run_steps(*threads, by_element, one_by_one) ==
          test::run_steps(*backend, by_element, {whole_step(by_element)}));
    RecurrenceScene unkept = scene;
    unkept.slots = {-1, -1, -1};
    CHECK(test::run_steps(*threads, unkept, {whole_step(unkept)}).same_rows(whole));
  }
}

// All cuts in two and in three, and so cuts just before, at and after the convolution's width. The
// state then holds rows of one step, of two or of three.
TEST_CASE("recur and causal_conv: what is kept after all rows is that of any other cut") {
  std::vector<Named> all;
  for (const int64_t width : {1, 2, 4, 8}) {
    RecurrenceScene delta{.conv_width = width, .lengths = {11}, .slots = {1}, .n_slots = 2};
    RecurrenceScene add = delta;
    add.update = StateUpdate::add;
    add.conv_bias = add.skip = true;
    RecurrenceScene gated = add;
    gated.conv_gated = true;
    RecurrenceScene dilated = add;
    dilated.dilation = width < 5 ? 3 : 1;
    all.push_back({cat("a convolution of ", width, " over every third token"), dilated});
    RecurrenceScene limited = add;
    limited.least_step = 0.5f;
    limited.most_step = 0.9f;
    all.push_back({cat("delta, a convolution of ", width), delta});
    all.push_back({cat("add, a convolution of ", width), add});
    all.push_back({cat("gates around a convolution of ", width), gated});
    all.push_back({cat("add within limits, a convolution of ", width), limited});
  }
  const auto backend = make_cpu_backend(2);
  for (Named& each : all) {
    CAPTURE(each.name);
    each.scene.randomise(13);
    const RecurrenceScene& scene = each.scene;
    const auto whole = test::run_steps(*backend, scene, {whole_step(scene)});
    for (int64_t first = 1; first < scene.lengths[0]; ++first) {
      CAPTURE(first);
      CHECK(test::run_steps(*backend, scene, cut_before(scene, 0, {first})) == whole);
      for (int64_t second = first + 1; second < scene.lengths[0]; ++second) {
        CAPTURE(second);
        CHECK(test::run_steps(*backend, scene, cut_before(scene, 0, {first, second})) == whole);
      }
    }
  }
}

}  // namespace
}  // namespace fp8kv
