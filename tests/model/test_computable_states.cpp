// States of layers that the forward pass refuses: it would compute them wrongly.
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "model/computable.h"
#include "support/models/tiny_checkpoint.h"
#include "support/refused_model.h"

namespace fp8kv {

TEST_CASE("computable: Q and K of a state are normed and rotated where no convolution follows") {
  const auto rotated = [](ModelConfig& c) {
    RecurrenceConfig& state = c.recurrence.emplace();
    state.update = StateUpdate::add;
    state.norm = StateNorm::groups;
    state.activates = false;
    state.k_heads = state.v_heads = 4;
    state.k_dim = state.v_dim = 8;
    state.qk_norm = true;
    state.norm_groups = 2;
    state.rope = static_cast<int32_t>(c.ropes.size());
    c.ropes.emplace_back().rotary_dim = 4;
  };
  ModelConfig lightning = test::tiny_model();
  rotated(lightning);
  check_computable(lightning);
  CHECK(lightning.rope_head_dim(1) == 8);
  const auto refusal = [&](const std::function<void(ModelConfig&)>& change) {
    return test::refusal([&](ModelConfig& c) {
      rotated(c);
      change(c);
    });
  };
  CHECK(refusal([](ModelConfig& c) { c.recurrence->conv_width = 4; }) ==
        "LlamaForCausalLM: Q and K of a state are normed or rotated, or go into it without SiLU, "
        "expected a state without a convolution");
  CHECK(refusal([](ModelConfig& c) { c.recurrence->norm_groups = 3; }) ==
        "LlamaForCausalLM: the output of a state is normed in 3 groups, expected "
        "StateNorm::groups, and groups of one size");
  const std::function<void(ModelConfig&)> other_rotations[] = {
      [](ModelConfig& c) { c.layer_ropes[0] = 1; }, [](ModelConfig& c) { c.ropes.pop_back(); },
      [](ModelConfig& c) { c.ropes[1].rotary_dim = 3; },
      [](ModelConfig& c) { c.ropes[1].rotary_dim = 10; },
      [](ModelConfig& c) { c.ropes[1].q_growth = 0.5; }};
  for (const auto& change : other_rotations) {
    CHECK(refusal(change) ==
          "LlamaForCausalLM: a state has the rotation 1, expected one of its own, of an even "
          "number of a head's elements, which turns Q and K alike");
  }
}

}  // namespace fp8kv
