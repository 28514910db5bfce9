#include "config/families/groups/mamba_config.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr const char* kLimit = "time_step_limit";

bool has_states(const ModelConfig& model) {
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (model.keeps_state(i)) return true;
  }
  return false;
}

struct SaidWidth {
  int64_t width = 0;  // all heads together
  Json by;
};

SaidWidth width_of(const Json& text, const MambaKeys& keys, int64_t dim) {
  if (const auto said = keys.width ? text.find(keys.width) : std::nullopt) {
    text.find(keys.expand);
    return {in_range(*said, kLargestDim), *said};
  }
  const Json expand = text.at(keys.expand);
  return {dim * in_range(expand, kLargestDim / dim), expand};
}

int64_t head_dim_of(const Json& text, const MambaKeys& keys, int64_t heads, int64_t dim) {
  const auto [width, by] = width_of(text, keys, dim);
  const auto said = text.find(keys.head_dim);
  const bool by_width = !said || said->is_string();
  if (said && said->is_string() && said->as_string() != "auto") {
    fail(said->where(), ": is ", said->brief(), ", expected a number or \"auto\"");
  }
  const int64_t size = by_width ? width / heads : in_range(*said, kLargestDim / heads);
  if (size * heads != width) {
    fail(by.where(), ": makes the heads ", width, " wide together, but ", heads, " heads of ", size,
         " are ", size * heads);
  }
  return size;
}

// Infinity is written as Python writes it, or as transformers 5 does: {"__float__": "Infinity"}.
double limit_in(const Json& number) {
  const auto named = number.find("__float__");
  if (!named) return number.as_double();
  if (named->as_string() == "Infinity") return std::numeric_limits<double>::infinity();
  fail(number.where(), ": is ", number.brief(), ", expected a number or Infinity");
}

struct StepLimit {
  double least = 0.0;
  double most = std::numeric_limits<double>::infinity();
  bool operator==(const StepLimit&) const = default;
};

StepLimit step_limit(const Json& text) {
  const auto said = text.find(kLimit);
  if (!said) return {};
  if (!said->is_array() || said->size() != 2) {
    fail(said->where(), ": is ", said->brief(), ", expected an array of 2 numbers");
  }
  const StepLimit limit{limit_in((*said)[0]), limit_in((*said)[1])};
  if (!(limit.least >= 0) || !(limit.most > limit.least)) {
    fail(said->where(), ": is ", said->brief(),
         ", expected the least, 0 or more, and then the most");
  }
  return limit;
}

}  // namespace

void parse_mamba(const Json& text, const MambaKeys& keys, ModelConfig& out) {
  if (!has_states(out)) {
    for (const char* key : {keys.heads, keys.head_dim, keys.groups, keys.state_dim, keys.conv_width,
                            keys.conv_bias, keys.bias, keys.out_bias, keys.expand}) {
      text.find(key);
    }
    return;
  }
  RecurrenceConfig& state = out.recurrence.emplace();
  state.update = StateUpdate::add;
  state.norm = StateNorm::groups_after_gate;
  state.skip = true;
  const Json heads = text.at(keys.heads);
  state.v_heads = in_range(heads, kLargestDim);
  if (keys.checks_expand) {
    state.v_dim = head_dim_of(text, keys, state.v_heads, out.dim);
  } else {
    text.find(keys.expand);
    state.v_dim = in_range(text.at(keys.head_dim), kLargestDim / state.v_heads);
  }
  state.k_heads = in_range(text.at(keys.groups), kLargestDim / kMostStateRows);
  state.k_dim = in_range(text.at(keys.state_dim), kMostStateRows);
  state.conv_width = in_range(text.at(keys.conv_width), kMostConvWidth);
  state.conv_bias = is_on(text, keys.conv_bias);
  state.bias = text.get_bool(keys.bias, false);
  state.out_bias = text.get_bool(keys.out_bias, false);
  if (state.v_heads % state.k_heads != 0) {
    fail(heads.where(), ": is ", state.v_heads, ", expected a multiple of the ", state.k_heads,
         " groups of ", keys.groups);
  }
}

void parse_step_limit(const Json& text, ModelConfig& out) {
  const StepLimit limit = step_limit(text);
  if (!out.recurrence) return;
  out.recurrence->least_step = limit.least;
  out.recurrence->most_step = limit.most;
}

void check_no_step_limit(const Json& text) {
  if (step_limit(text) == StepLimit()) return;
  const Json said = text.at(kLimit);
  fail(said.where(), ": is ", said.brief(),
       ", expected [0.0, Infinity]: a limit of time steps is not supported in this architecture");
}

}  // namespace fp8kv
