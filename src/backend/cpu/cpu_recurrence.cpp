#include "backend/cpu/cpu_recurrence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_sequence_rows.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Channels of one job of a convolution.
constexpr int64_t kChannels = 64;
// Rows of one job that prepares a recurrence.
constexpr int64_t kPreparedRows = 16;

void multiply(float* values, const float* by, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] *= by[i];
}

struct Convolution {
  const CpuKernels& kernels;
  const TensorView& x;
  const CausalConv& conv;
  const Batch& batch;
  int64_t channels;
  int64_t width;
  const float* weights;  // [width, channels]
  const float* biases;   // [channels]

  // Computes channels [begin, end) of a sequence. `before` is a ring of the `kept` tokens before:
  // row r is in place r % kept.
  void run(int64_t sequence, int64_t begin, int64_t end) const {
    const SequenceRows rows = rows_of(batch, sequence);
    const int64_t count = end - begin, step = conv.dilation, kept = (width - 1) * step;
    float* state =
        rows.slot < 0 ? nullptr : conv.state.as<float>() + rows.slot * kept * channels + begin;
    std::array<float, kChannels> sum;
    std::vector<float> before(static_cast<size_t>(kept * kChannels));
    const auto place = [&](int64_t row) {  // row: counted from the first one
      return before.data() + ((row % kept) + kept) % kept * kChannels;
    };
    for (int64_t j = 0; j < kept && !rows.begins; ++j) {
      std::copy_n(state + j * channels, count, place(j - kept));
    }
    for (int64_t row = 0; row < rows.end - rows.first; ++row) {
      const int64_t at = (rows.first + row) * channels + begin;
      float* values = x.as<float>() + at;
      if (conv.in_gate) multiply(values, conv.in_gate->as<float>() + at, count);
      std::copy_n(biases + begin, count, sum.data());
      for (int64_t j = 0; j + 1 < width; ++j) {
        add(place(row - kept + j * step), j, begin, count, sum.data());
      }
      add(values, width - 1, begin, count, sum.data());
      for (int64_t i = 0; conv.adds_input && i < count; ++i) sum[i] += values[i];
      if (kept > 0) std::copy_n(values, count, place(row));
      if (conv.silu) {
        kernels.activate[static_cast<size_t>(Activation::silu)](sum.data(), nullptr, count);
      }
      if (conv.out_gate) multiply(sum.data(), conv.out_gate->as<float>() + at, count);
      std::copy_n(sum.data(), count, values);
    }
    if (state == nullptr) return;
    for (int64_t j = 0; j < kept; ++j) {
      std::copy_n(place(rows.end - rows.first - kept + j), count, state + j * channels);
    }
  }

  void add(const float* values, int64_t tap, int64_t begin, int64_t count, float* sum) const {
    const float* weight = weights + tap * channels + begin;
    for (int64_t i = 0; i < count; ++i) sum[i] += weight[i] * values[i];
  }
};

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

// Values of the rows that all columns of a state share.
struct Prepared {
  float* q;       // [n, k_heads, k_dim]
  float* k;       // [n, k_heads, k_dim]
  float* q_of_k;  // [n, k_heads]: Q times K
  float* decay;   // [n, steps]
  // With a decay for each row of a state: Q and K times it.   [n, k_heads, k_dim]
  float *decayed_q, *decayed_k;
  float* strength;  // [n, v_heads]
};

struct Recurring {
  const CpuKernels& kernels;
  const Recurrence& args;
  const Batch& batch;
  const TensorView& out;
  Prepared prepared;
  const float* a_log;      // [v_heads]
  const float* step_bias;  // [steps]
  const float* skip;       // [v_heads]; null: none
  int64_t k_heads = args.k.shape[1];
  int64_t k_dim = args.k.shape[2];
  int64_t v_heads = args.v.shape[1];
  int64_t v_dim = args.v.shape[2];
  int64_t steps = args.step.shape[1];
  bool by_row = steps != v_heads;  // each row of a state has a decay of its own

  // Scales a head to length 1, then by `scale`.
  void unit(const float* from, double scale, float* to) const {
    double squares = 0;
    for (int64_t i = 0; i < k_dim; ++i) squares += double{from[i]} * double{from[i]};
    const auto factor = static_cast<float>(scale / std::sqrt(squares + kUnitEps));
    for (int64_t i = 0; i < k_dim; ++i) to[i] = from[i] * factor;
  }

  void prepare(int64_t row) const {
    for (int64_t head = 0; head < k_heads; ++head) {
      const int64_t at = (row * k_heads + head) * k_dim;
      const float *q = args.q.as<float>() + at, *k = args.k.as<float>() + at;
      if (args.unit) {
        unit(q, 1 / std::sqrt(static_cast<double>(k_dim)), prepared.q + at);
        unit(k, 1.0, prepared.k + at);
      } else {
        std::copy_n(q, k_dim, prepared.q + at);
        std::copy_n(k, k_dim, prepared.k + at);
      }
      double product = 0;
      for (int64_t i = 0; i < k_dim; ++i) {
        product += double{prepared.q[at + i]} * double{prepared.k[at + i]};
      }
      prepared.q_of_k[row * k_heads + head] = static_cast<float>(product);
    }
    for (int64_t head = 0; head < v_heads; ++head) prepare_decay(row, head);
  }

  void prepare_decay(int64_t row, int64_t head) const {
    const int64_t each = steps / v_heads, first = row * steps + head * each;
    const float rate = std::exp(a_log[head]);
    float step = 0.0f;
    for (int64_t i = 0; i < each; ++i) {
      const float raw = args.step.as<float>()[first + i] + step_bias[head * each + i];
      if (args.least_log_decay < 0.0f) {
        prepared.decay[first + i] = std::exp(args.least_log_decay * sigmoid(rate * raw));
      } else {
        step = time_step(args, raw);
        prepared.decay[first + i] = std::exp(-rate * step);
      }
      if (!by_row) continue;
      prepared.decayed_q[first + i] = prepared.decay[first + i] * prepared.q[first + i];
      prepared.decayed_k[first + i] = prepared.decay[first + i] * prepared.k[first + i];
    }
    const int64_t at = row * v_heads + head;
    prepared.strength[at] =
        args.strength ? args.most_strength * sigmoid(args.strength->as<float>()[at]) : step;
  }

  // Lets one block of columns of a head's state take in all rows of its sequence.
  void run(int64_t sequence, int64_t head, int64_t block, float* spare) const {
    const SequenceRows rows = rows_of(batch, sequence);
    const int64_t n_blocks = state_blocks(v_dim), size = k_dim * kStateColumns;
    float* state = rows.slot < 0 ? spare
                                 : args.state.as<float>() +
                                       ((rows.slot * v_heads + head) * n_blocks + block) * size;
    if (rows.begins) std::fill_n(state, size, 0.0f);
    const int64_t first_column = block * kStateColumns;
    const int64_t columns = std::min(kStateColumns, v_dim - first_column);
    const int64_t k_head = head / (v_heads / k_heads);
    alignas(64) std::array<float, kStateColumns> delta{}, of_k{}, of_q{};
    const auto read_of = [&](int64_t row) {
      const int64_t at = (row * k_heads + k_head) * k_dim;
      return StateRead{(by_row ? prepared.decayed_k : prepared.k) + at,
                       (by_row ? prepared.decayed_q : prepared.q) + at, of_k.data(), of_q.data()};
    };
    for (int64_t row = rows.first; row < rows.end; ++row) {
      const StateRead read = read_of(row);
      if (row == rows.first) kernels.state_pass(state, k_dim, nullptr, &read);
      const int64_t at = row * v_heads + head;
      const float* decays = prepared.decay + row * steps + head * (steps / v_heads);
      const float decay = by_row ? 1.0f : *decays, strength = prepared.strength[at];
      const float product = prepared.q_of_k[row * k_heads + k_head];
      const float* v = args.v.as<float>() + at * v_dim + first_column;
      float* to = out.as<float>() + at * v_dim + first_column;
      for (int64_t j = 0; j < columns; ++j) {
        const auto c = static_cast<size_t>(j);
        const float known = args.update == StateUpdate::delta ? decay * of_k[c] : 0.0f;
        delta[c] = (v[j] - known) * strength;
        to[j] = decay * of_q[c] + product * delta[c];
      }
      for (int64_t j = 0; skip != nullptr && j < columns; ++j) to[j] += skip[head] * v[j];
      const StateWrite write{prepared.k + (row * k_heads + k_head) * k_dim, delta.data(), decays,
                             by_row ? 1 : 0};
      const bool last = row + 1 == rows.end;
      const StateRead next = last ? StateRead{} : read_of(row + 1);
      if (!last || rows.slot >= 0) {
        kernels.state_pass(state, k_dim, &write, last ? nullptr : &next);
      }
    }
  }
};

}  // namespace

void cpu_causal_conv(const CpuContext& cpu, RecurrenceScratch& scratch, const TensorView& x,
                     const CausalConv& conv, const Batch& batch) {
  FP8KV_ASSERT(x.dtype == DType::f32);
  const int64_t channels = x.shape[1], width = conv.weight.shape.elements() / channels;
  FP8KV_ASSERT(conv.weight.shape.elements() == channels * width);
  FP8KV_ASSERT(conv.before() <= kMostConvBefore);
  const int64_t all = channels * width;
  float* weights = scratch.weights.floats(static_cast<size_t>(2 * all + channels));
  float *by_channel = weights + all, *biases = by_channel + all;
  cpu.kernels.to_float[conv.weight.dtype](conv.weight.data, all, by_channel);
  for (int64_t i = 0; i < all; ++i) weights[i % width * channels + i / width] = by_channel[i];
  std::fill_n(biases, channels, 0.0f);
  if (conv.bias) cpu.kernels.to_float[conv.bias->dtype](conv.bias->data, channels, biases);
  const Convolution convolution{cpu.kernels, x, conv, batch, channels, width, weights, biases};
  const int64_t parts = (channels + kChannels - 1) / kChannels;
  cpu.pool.run(sequences_of(batch) * parts, [&](int64_t job, int /*thread*/) {
    const int64_t begin = job % parts * kChannels;
    convolution.run(job / parts, begin, std::min(begin + kChannels, channels));
  });
}

void cpu_recur(const CpuContext& cpu, RecurrenceScratch& scratch, const Recurrence& args,
               const Batch& batch, const TensorView& out) {
  FP8KV_ASSERT(args.q.dtype == DType::f32 && out.dtype == DType::f32);
  FP8KV_ASSERT(!args.by_element);
  const int64_t n = args.k.shape[0], k_heads = args.k.shape[1], k_dim = args.k.shape[2];
  const int64_t v_heads = args.v.shape[1], n_blocks = state_blocks(args.v.shape[2]);
  const int64_t steps = args.step.shape[1];
  FP8KV_ASSERT(v_heads % k_heads == 0);
  FP8KV_ASSERT(steps == v_heads || (steps == v_heads * k_dim && v_heads == k_heads));
  FP8KV_ASSERT(args.least_log_decay == 0.0f || (steps != v_heads && args.strength));
  const int64_t keys = n * k_heads * k_dim, decayed = steps == v_heads ? 0 : keys;
  float* next = scratch.rows.floats(static_cast<size_t>(2 * (keys + decayed + v_heads) +
                                                        n * (k_heads + steps + v_heads) + steps));
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  Prepared prepared{};
  prepared.q = take(keys);
  prepared.k = take(keys);
  prepared.q_of_k = take(n * k_heads);
  prepared.decay = take(n * steps);
  prepared.decayed_q = take(decayed);
  prepared.decayed_k = take(decayed);
  prepared.strength = take(n * v_heads);
  float *a_log = take(v_heads), *step_bias = take(steps), *skip = take(v_heads);
  cpu.kernels.to_float[args.a_log.dtype](args.a_log.data, v_heads, a_log);
  cpu.kernels.to_float[args.step_bias.dtype](args.step_bias.data, steps, step_bias);
  if (args.skip) cpu.kernels.to_float[args.skip->dtype](args.skip->data, v_heads, skip);
  const Recurring recurring{cpu.kernels, args,  batch,     out,
                            prepared,    a_log, step_bias, args.skip ? skip : nullptr};
  cpu.pool.run((n + kPreparedRows - 1) / kPreparedRows, [&](int64_t job, int /*thread*/) {
    const int64_t end = std::min(n, (job + 1) * kPreparedRows);
    for (int64_t row = job * kPreparedRows; row < end; ++row) recurring.prepare(row);
  });
  const int64_t size = k_dim * kStateColumns;
  float* spare = scratch.states.floats(static_cast<size_t>(cpu.pool.threads() * size));
  cpu.pool.run(sequences_of(batch) * v_heads * n_blocks, [&](int64_t job, int thread) {
    const int64_t of_sequence = job % (v_heads * n_blocks);
    recurring.run(job / (v_heads * n_blocks), of_sequence / n_blocks, of_sequence % n_blocks,
                  spare + thread * size);
  });
}

}  // namespace fp8kv
