#include <string>

#include <doctest/doctest.h>

#include "support/backends/gpu_backends.h"
#include "support/backends/recurrence_scene.h"

namespace fp8kv {
namespace {

using test::RecurrenceScene;

TEST_CASE("gpu recur and causal_conv: what double precision gives, for every compute type") {
  RecurrenceScene delta{.k_dim = 6, .v_dim = 5, .skip = true, .lengths = {7, 1, 3}};
  RecurrenceScene by_row{.k_heads = 4, .k_dim = 6, .v_dim = 5, .by_row = true};
  delta.conv_bias = by_row.conv_gated = true;
  delta.dilation = 3;
  RecurrenceScene bounded = by_row;
  bounded.least_log_decay = -1.5f;
  RecurrenceScene adding{.k_dim = 6, .v_dim = 5, .conv_adds = true, .conv_f32 = true};
  RecurrenceScene by_element{
      .update = StateUpdate::add, .k_dim = 6, .v_dim = 5, .skip = true, .by_element = true};
  for (RecurrenceScene* scene : {&delta, &by_row, &bounded, &adding, &by_element}) {
    for (const DType activations : test::kComputeTypes) {
      CAPTURE(std::string(dtype_name(activations)));
      CAPTURE(scene->by_row);
      CAPTURE(scene->least_log_decay);
      CAPTURE(scene->by_element);
      scene->activations = activations;
      scene->randomise(7);
      const test::ExactRecurrence exact = test::exact_recurrence(*scene);
      test::on_every_backend([&](Backend& backend) {
        const auto found = test::run_steps(backend, *scene, {whole_step(*scene)});
        test::expect_close(found.recurred, exact.recurred, exact.recurred_allowed);
        test::expect_close(found.convolved, exact.convolved, exact.convolved_allowed);
      });
    }
  }
}

TEST_CASE("gpu recur and causal_conv: what double precision gives, however rows are cut") {
  RecurrenceScene delta{.k_dim = 9, .v_dim = 34};
  RecurrenceScene add{.update = StateUpdate::add, .k_dim = 5, .v_dim = 3, .conv_bias = true};
  RecurrenceScene skip{.update = StateUpdate::add,
                       .k_dim = 6,
                       .v_dim = 33,
                       .skip = true,
                       .least_step = 0.5f,
                       .most_step = 0.9f};
  RecurrenceScene gated = add;
  gated.conv_gated = true;
  skip.dilation = 2;
  RecurrenceScene by_row{
      .k_heads = 4, .k_dim = 9, .v_dim = 34, .by_row = true, .most_strength = 2.0f};
  RecurrenceScene bounded = by_row;
  bounded.least_log_decay = -1.5f;
  RecurrenceScene adding = add;
  adding.conv_bias = false;
  adding.conv_adds = true;
  RecurrenceScene by_element = skip;
  by_element.by_element = true;
  by_element.k_heads = 1;
  for (RecurrenceScene* scene :
       {&delta, &add, &skip, &gated, &by_row, &bounded, &adding, &by_element}) {
    scene->randomise(5);
    const test::ExactRecurrence exact = test::exact_recurrence(*scene);
    for (const test::NamedBackend& each : test::gpu_backends()) {
      CAPTURE(each.name);
      const auto backend = each.make();
      const auto whole = test::run_steps(*backend, *scene, {whole_step(*scene)});
      test::expect_close(whole.recurred, exact.recurred, exact.recurred_allowed);
      test::expect_close(whole.convolved, exact.convolved, exact.convolved_allowed);
      const auto cut = test::run_steps(
          *backend, *scene,
          {{{2, 0, 2}, {0, 0, 4}}, {{0, 4, 1}, {1, 0, 1}, {2, 2, 1}}, {{0, 5, 4}, {2, 3, 2}}});
      CHECK(cut == whole);
      RecurrenceScene unkept = *scene;
      unkept.slots = {-1, -1, -1};
      CHECK(test::run_steps(*backend, unkept, {whole_step(unkept)}).same_rows(whole));
    }
  }
}

}  // namespace
}  // namespace fp8kv
