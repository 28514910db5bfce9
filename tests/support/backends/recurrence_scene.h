// Sequences of random rows for the ops that keep a state: their results in one step or in several,
// and in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "core/numbers/host_view.h"
#include "support/backends/compare.h"
#include "support/backends/cpu.h"
#include "support/backends/typed_tensors.h"

namespace fp8kv::test {

struct RecurrenceScene {
  StateUpdate update = StateUpdate::delta;
  int64_t k_heads = 2;
  int64_t k_dim = 7;
  int64_t v_heads = 4;
  int64_t v_dim = 37;  // more than a block of columns
  int64_t conv_width = 4;
  int64_t dilation = 1;  // of the convolution
  bool conv_bias = false;
  bool conv_gated = false;  // gates before and behind the convolution, and no SiLU
  bool conv_adds = false;   // the convolution adds its input, and no SiLU follows
  bool conv_f32 = false;    // its weights are F32, whatever the activations are
  bool skip = false;
  bool by_row = false;      // each row of a state decays by its own step
  bool by_element = false;  // each column has a step, and each element a rate
  float most_strength = 1.0f;
  float least_log_decay = 0.0f;
  float least_step = 0.0f, most_step = std::numeric_limits<float>::infinity();
  std::vector<int64_t> lengths = {9, 1, 5};  // one per sequence
  std::vector<int64_t> slots = {2, 0, 3};    // slot of each sequence's state; -1: not kept
  int64_t n_slots = 4;
  DType activations = DType::f32;
  std::vector<float> q = {}, k = {}, v = {}, step = {}, strength = {}, a_log = {}, step_bias = {},
                     skips = {};
  // For the convolution, v_heads * v_dim channels.
  std::vector<float> x = {}, weight = {}, bias = {}, in_gate = {}, out_gate = {};

  int64_t rows() const {
    int64_t n = 0;
    for (const int64_t length : lengths) n += length;
    return n;
  }
  int64_t steps() const { return by_row ? k_heads * k_dim : by_element ? channels() : v_heads; }
  int64_t rates() const { return by_element ? channels() * k_dim : v_heads; }
  int64_t n_skips() const { return by_element ? channels() : v_heads; }
  int64_t channels() const { return v_heads * v_dim; }
  DType weight_dtype() const { return conv_f32 ? DType::f32 : activations; }
  bool has_strength() const { return update == StateUpdate::delta; }

  void randomise(uint64_t seed) {
    Rng rng(seed);
    const int64_t n = rows();
    q = random_floats(rng, n * k_heads * k_dim);
    k = random_floats(rng, n * k_heads * k_dim);
    v = random_floats(rng, n * v_heads * v_dim);
    step = random_floats(rng, n * steps());
    strength = random_floats(rng, n * v_heads);
    a_log = random_floats(rng, rates());
    step_bias = random_floats(rng, steps());
    skips = random_floats(rng, n_skips());
    x = random_floats(rng, n * channels());
    weight = random_floats(rng, channels() * conv_width);
    bias = random_floats(rng, channels());
    in_gate = random_floats(rng, n * channels());
    out_gate = random_floats(rng, n * channels());
    // A head's state decays noticeably, but not at once.
    for (float& value : a_log) value -= 2;
    for (auto* values : {&q, &k, &v, &a_log, &step_bias, &skips, &x, &bias, &in_gate, &out_gate}) {
      *values = rounded_to(*values, activations);
    }
    weight = rounded_to(weight, weight_dtype());
  }
};

// Rows [first, first + count) of a sequence, in a step.
struct ScenePart {
  size_t sequence = 0;
  int64_t first = 0;
  int64_t count = 0;
};
using SceneStep = std::vector<ScenePart>;

// A step of all sequences, whole and side by side.
inline SceneStep whole_step(const RecurrenceScene& scene) {
  SceneStep step;
  for (size_t i = 0; i < scene.lengths.size(); ++i) step.push_back({i, 0, scene.lengths[i]});
  return step;
}

// Steps of one sequence of the scene, cut before these rows and before its last row.
inline std::vector<SceneStep> cut_before(const RecurrenceScene& scene, size_t sequence,
                                         const std::vector<int64_t>& rows) {
  std::vector<SceneStep> steps;
  int64_t first = 0;
  for (const int64_t row : rows) {
    steps.push_back({{sequence, first, row - first}});
    first = row;
  }
  steps.push_back({{sequence, first, scene.lengths[sequence] - first}});
  return steps;
}

// The results of consecutive steps on one backend, in the order of the scene's rows.
struct RecurrenceOutcome {
  std::vector<float> recurred;   // [rows, v_heads, v_dim]
  std::vector<float> convolved;  // [rows, channels]
  // The final contents of Recurrence::state and of CausalConv::state.
  std::vector<float> states, tails;
  bool operator==(const RecurrenceOutcome&) const = default;
  bool same_rows(const RecurrenceOutcome& other) const {
    return recurred == other.recurred && convolved == other.convolved;
  }
};

inline RecurrenceOutcome run_steps(Backend& backend, const RecurrenceScene& s,
                                   const std::vector<SceneStep>& steps) {
  const auto width = [&](int64_t heads, int64_t size) { return static_cast<size_t>(heads * size); };
  std::vector<int64_t> first_rows = {0};
  for (const int64_t length : s.lengths) first_rows.push_back(first_rows.back() + length);
  RecurrenceOutcome out;
  out.recurred.resize(s.v.size());
  out.convolved.resize(s.x.size());
  const Tensor state =
      backend.allocate(DType::f32, Shape{s.n_slots, state_elements(s.v_heads, s.k_dim, s.v_dim)});
  const Tensor tail =
      backend.allocate(DType::f32, Shape{s.n_slots, (s.conv_width - 1) * s.dilation, s.channels()});
  // Fills the state with leftovers of another sequence.
  const auto spoil = [&](const Tensor& tensor) {
    const std::vector<float> old(static_cast<size_t>(tensor.view().shape.elements()), 3.0f);
    backend.copy_in(tensor.view(), host_view(old, tensor.view().shape));
  };
  spoil(state);
  spoil(tail);
  const Tensor a_log =
      put(backend, s.a_log, s.activations,
          Shape{s.rates() / (s.by_element ? s.k_dim : 1), s.by_element ? s.k_dim : 1});
  const Tensor step_bias = put(backend, s.step_bias, s.activations, Shape{s.steps()});
  const Tensor skips = put(backend, s.skips, s.activations, Shape{s.n_skips()});
  const Tensor weight = put(backend, s.weight, s.weight_dtype(), Shape{s.channels(), s.conv_width});
  const Tensor bias = put(backend, s.bias, s.activations, Shape{s.channels()});
  for (const SceneStep& step : steps) {
    std::vector<int32_t> positions, indptr = {0}, states;
    std::vector<size_t> rows;
    for (const ScenePart& part : step) {
      for (int64_t i = part.first; i < part.first + part.count; ++i) {
        rows.push_back(static_cast<size_t>(first_rows[part.sequence] + i));
        positions.push_back(static_cast<int32_t>(i));
      }
      indptr.push_back(static_cast<int32_t>(rows.size()));
      states.push_back(static_cast<int32_t>(s.slots[part.sequence]));
    }
    const auto n = static_cast<int64_t>(rows.size());
    const auto gathered = [&](const std::vector<float>& from, size_t row_width, DType dtype,
                              Shape shape) {
      std::vector<float> values;
      for (const size_t row : rows) {
        const auto at = from.begin() + static_cast<std::ptrdiff_t>(row * row_width);
        values.insert(values.end(), at, at + static_cast<std::ptrdiff_t>(row_width));
      }
      return put(backend, values, dtype, shape);
    };
    const auto scatter = [&](const std::vector<float>& from, size_t row_width,
                             std::vector<float>& to) {
      for (size_t i = 0; i < rows.size(); ++i) {
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i * row_width), row_width,
                    to.begin() + static_cast<std::ptrdiff_t>(rows[i] * row_width));
      }
    };
    const Tensor q =
        gathered(s.q, width(s.k_heads, s.k_dim), s.activations, {n, s.k_heads, s.k_dim});
    const Tensor k =
        gathered(s.k, width(s.k_heads, s.k_dim), s.activations, {n, s.k_heads, s.k_dim});
    const Tensor v =
        gathered(s.v, width(s.v_heads, s.v_dim), s.activations, {n, s.v_heads, s.v_dim});
    const Tensor t = gathered(s.step, width(s.steps(), 1), DType::f32, {n, s.steps()});
    const Tensor b = gathered(s.strength, width(s.v_heads, 1), DType::f32, {n, s.v_heads});
    const Tensor x = gathered(s.x, width(s.channels(), 1), s.activations, {n, s.channels()});
    const Tensor in_gate =
        gathered(s.in_gate, width(s.channels(), 1), s.activations, {n, s.channels()});
    const Tensor out_gate =
        gathered(s.out_gate, width(s.channels(), 1), s.activations, {n, s.channels()});
    const Tensor made = backend.allocate(s.activations, Shape{n, s.v_heads, s.v_dim});
    const Tensor at = tensor_of(backend, positions, Shape{n});
    const Tensor bounds = tensor_of(backend, indptr, Shape{static_cast<int64_t>(indptr.size())});
    const Tensor kept = tensor_of(backend, states, Shape{static_cast<int64_t>(states.size())});
    Batch batch;
    batch.positions = at.view();
    batch.indptr = bounds.view();
    batch.states = kept.view();
    Recurrence args;
    args.update = s.update;
    args.q = q.view();
    args.k = k.view();
    args.v = v.view();
    args.step = t.view();
    if (s.has_strength()) args.strength = b.view();
    args.most_strength = s.most_strength;
    args.a_log = a_log.view();
    args.step_bias = step_bias.view();
    args.least_step = s.least_step;
    args.most_step = s.most_step;
    args.least_log_decay = s.least_log_decay;
    if (s.skip) args.skip = skips.view();
    args.unit = s.update == StateUpdate::delta;
    args.by_element = s.by_element;
    args.state = state.view();
    backend.recur(args, batch, made.view());
    CausalConv conv;
    conv.weight = weight.view();
    if (s.conv_bias) conv.bias = bias.view();
    conv.state = tail.view();
    conv.silu = !s.conv_gated && !s.conv_adds;
    conv.adds_input = s.conv_adds;
    conv.dilation = s.dilation;
    if (s.conv_gated) conv.in_gate = in_gate.view(), conv.out_gate = out_gate.view();
    backend.causal_conv(x.view(), conv, batch);
    scatter(get(backend, made.view()), width(s.v_heads, s.v_dim), out.recurred);
    scatter(get(backend, x.view()), width(s.channels(), 1), out.convolved);
  }
  out.states = floats_of(backend, state.view());
  out.tails = floats_of(backend, tail.view());
  return out;
}

// The results in double precision, and the error that rounding to `unit` may cause in each.
struct ExactRecurrence {
  std::vector<double> recurred, recurred_allowed, convolved, convolved_allowed;
};

inline ExactRecurrence exact_recurrence(const RecurrenceScene& s, double unit = kUnitF32) {
  ExactRecurrence out;
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto of = [](const std::vector<float>& values, int64_t i) {
    return double{values[static_cast<size_t>(i)]};
  };
  // The rounding of a result to 16 bits.
  const auto stored = [&](double value) {
    return s.activations == DType::f32 ? 0.0 : rounding_of(value, s.activations);
  };
  const int64_t group = s.v_heads / s.k_heads;
  int64_t first = 0;
  for (const int64_t length : s.lengths) {
    const auto cells = static_cast<size_t>(s.v_heads * s.k_dim * s.v_dim);
    std::vector<double> state(cells);
    double most = 0;  // the largest magnitude in any state of the sequence
    for (int64_t row = first; row < first + length; ++row) {
      for (int64_t head = 0; head < s.v_heads; ++head) {
        std::vector<double> q, k;
        for (int64_t i = 0; i < s.k_dim; ++i) {
          const int64_t at = (row * s.k_heads + head / group) * s.k_dim + i;
          q.push_back(of(s.q, at));
          k.push_back(of(s.k, at));
        }
        if (s.update == StateUpdate::delta) {
          double qq = 0, kk = 0;
          for (const double each : q) qq += each * each;
          for (const double each : k) kk += each * each;
          for (double& each : q) {
            each /= std::sqrt(qq + 1e-6) * std::sqrt(static_cast<double>(s.k_dim));
          }
          for (double& each : k) each /= std::sqrt(kk + 1e-6);
        }
        const int64_t gate = row * s.v_heads + head;
        // The step of row i of a state, or of its column j.
        const auto raw_of = [&](int64_t i, int64_t j) {
          const int64_t number = s.by_row       ? head * s.k_dim + i
                                 : s.by_element ? head * s.v_dim + j
                                                : head;
          return of(s.step, row * s.steps() + number) + of(s.step_bias, number);
        };
        const auto step_of = [&](int64_t i, int64_t j) {
          return std::clamp(std::log1p(std::exp(raw_of(i, j))), double{s.least_step},
                            double{s.most_step});
        };
        const auto decay_of = [&](int64_t i, int64_t j) {
          const int64_t number = s.by_element ? (head * s.v_dim + j) * s.k_dim + i : head;
          const double rate = std::exp(of(s.a_log, number));
          if (s.least_log_decay == 0.0f) return std::exp(-rate * step_of(i, j));
          return std::exp(s.least_log_decay * sigmoid(rate * raw_of(i, j)));
        };
        const auto strength_of = [&](int64_t j) {
          return s.has_strength() ? s.most_strength * sigmoid(of(s.strength, gate)) : step_of(0, j);
        };
        for (int64_t j = 0; j < s.v_dim; ++j) {
          const auto cell = [&](int64_t i) -> double& {
            return state[static_cast<size_t>((head * s.k_dim + i) * s.v_dim + j)];
          };
          double known = 0;
          const double value = of(s.v, (row * s.v_heads + head) * s.v_dim + j);
          const int64_t skipped = s.by_element ? head * s.v_dim + j : head;
          double result = s.skip ? of(s.skips, skipped) * value : 0;
          for (int64_t i = 0; i < s.k_dim; ++i) {
            cell(i) *= decay_of(i, j);
            known += cell(i) * k[static_cast<size_t>(i)];
          }
          if (s.update == StateUpdate::add) known = 0;
          for (int64_t i = 0; i < s.k_dim; ++i) {
            cell(i) += k[static_cast<size_t>(i)] * (value - known) * strength_of(j);
            result += cell(i) * q[static_cast<size_t>(i)];
            most = std::max(most, std::abs(cell(i)));
          }
          out.recurred.push_back(result);
        }
      }
      // Every row rounds sums of k_dim products of at most `most` and 1, and some more. Its error
      // in a state does not grow.
      const double roundings = static_cast<double>((s.k_dim + 16) * (row - first + 2) * s.k_dim);
      for (int64_t i = row * s.channels(); i < (row + 1) * s.channels(); ++i) {
        out.recurred_allowed.push_back(roundings * unit * (1 + most) +
                                       stored(out.recurred[static_cast<size_t>(i)]));
      }
      for (int64_t channel = 0; channel < s.channels(); ++channel) {
        double sum = s.conv_bias ? of(s.bias, channel) : 0, size = std::abs(sum);
        for (int64_t tap = 0; tap < s.conv_width; ++tap) {
          const int64_t from = row - (s.conv_width - 1 - tap) * s.dilation;
          if (from < first) continue;
          const int64_t at = from * s.channels() + channel;
          const double input = of(s.x, at) * (s.conv_gated ? of(s.in_gate, at) : 1);
          const double product = of(s.weight, channel * s.conv_width + tap) * input;
          sum += product;
          size += std::abs(product);
        }
        if (s.conv_adds) {
          const double input = of(s.x, row * s.channels() + channel);
          sum += input;
          size += std::abs(input);
        }
        const double factor = s.conv_gated  ? of(s.out_gate, row * s.channels() + channel)
                              : s.conv_adds ? 1
                                            : sigmoid(sum);
        if (s.conv_gated) size *= std::abs(factor);
        out.convolved.push_back(sum * factor);
        // The slope of silu is below 1.1. Gates round each product and the result once more.
        const double roundings_of_sum = static_cast<double>(s.conv_width + 4);
        out.convolved_allowed.push_back(unit * (1.1 * roundings_of_sum * size + 6 * size) +
                                        stored(out.convolved.back()) + 1e-30);
      }
    }
    first += length;
  }
  return out;
}

}  // namespace fp8kv::test
