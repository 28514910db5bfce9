#include "backend/cpu/cpu_recur_elements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cpu/cpu_sequence_rows.h"
#include "base/error.h"

namespace fp8kv {
namespace {

struct Elements {
  const Recurrence& args;
  const Batch& batch;
  const TensorView& out;
  const float* rates;      // [channels, k_dim], below 0
  const float* step_bias;  // [channels]
  const float* skip;       // [channels]; null: none
  int64_t k_heads = args.k.shape[1];
  int64_t k_dim = args.k.shape[2];
  int64_t v_heads = args.v.shape[1];
  int64_t v_dim = args.v.shape[2];

  // Lets one column of a block of a head's state take in a row. Returns what Q reads of it.
  float take(int64_t row, int64_t channel, int64_t k_head, float* column) const {
    const int64_t at = row * v_heads * v_dim + channel, k_at = (row * k_heads + k_head) * k_dim;
    const float *k = args.k.as<float>() + k_at, *q = args.q.as<float>() + k_at;
    const float* rate = rates + channel * k_dim;
    const float step = time_step(args, args.step.as<float>()[at] + step_bias[channel]);
    const float v = args.v.as<float>()[at], taken = v * step;
    float read = 0.0f;
    for (int64_t i = 0; i < k_dim; ++i) {
      float& cell = column[i * kStateColumns];
      cell = cell * std::exp(rate[i] * step) + k[i] * taken;
      read += q[i] * cell;
    }
    return skip == nullptr ? read : read + skip[channel] * v;
  }

  // Lets one block of columns of a head's state take in all rows of its sequence.
  void run(int64_t sequence, int64_t head, int64_t block, float* spare) const {
    const SequenceRows rows = rows_of(batch, sequence);
    const int64_t size = k_dim * kStateColumns;
    float* state = rows.slot < 0
                       ? spare
                       : args.state.as<float>() +
                             ((rows.slot * v_heads + head) * state_blocks(v_dim) + block) * size;
    if (rows.begins) std::fill_n(state, size, 0.0f);
    const int64_t first = block * kStateColumns;
    const int64_t columns = std::min(kStateColumns, v_dim - first);
    const int64_t k_head = head / (v_heads / k_heads);
    for (int64_t row = rows.first; row < rows.end; ++row) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t channel = head * v_dim + first + j;
        out.as<float>()[row * v_heads * v_dim + channel] = take(row, channel, k_head, state + j);
      }
    }
  }
};

}  // namespace

void cpu_recur_elements(const CpuContext& cpu, RecurrenceScratch& scratch, const Recurrence& args,
                        const Batch& batch, const TensorView& out) {
  const int64_t v_heads = args.v.shape[1], v_dim = args.v.shape[2], k_dim = args.k.shape[2];
  const int64_t channels = v_heads * v_dim, n_blocks = state_blocks(v_dim);
  FP8KV_ASSERT(args.update == StateUpdate::add && !args.unit && !args.strength);
  FP8KV_ASSERT(v_heads % args.k.shape[1] == 0 && k_dim <= kMostRatedRows);
  FP8KV_ASSERT(args.step.shape[1] == channels && args.a_log.shape.elements() == channels * k_dim);
  float* next = scratch.rows.floats(static_cast<size_t>(channels * (k_dim + 2)));
  const auto numbers = [&](const ConstTensorView& view) {
    const int64_t count = view.shape.elements();
    float* values = std::exchange(next, next + count);
    cpu.kernels.to_float[view.dtype](view.data, count, values);
    return values;
  };
  float* rates = numbers(args.a_log);
  const float* step_bias = numbers(args.step_bias);
  const Elements elements{args,  batch,     out,
                          rates, step_bias, args.skip ? numbers(*args.skip) : nullptr};
  cpu.pool.run(v_heads * n_blocks, [&](int64_t job, int /*thread*/) {
    const int64_t first = job / n_blocks * v_dim + job % n_blocks * kStateColumns;
    const int64_t count = std::min(kStateColumns, v_dim - job % n_blocks * kStateColumns);
    for (int64_t i = first * k_dim; i < (first + count) * k_dim; ++i)
      rates[i] = -std::exp(rates[i]);
  });
  const int64_t size = k_dim * kStateColumns;
  float* spare = scratch.states.floats(static_cast<size_t>(cpu.pool.threads() * size));
  cpu.pool.run(sequences_of(batch) * v_heads * n_blocks, [&](int64_t job, int thread) {
    const int64_t of_sequence = job % (v_heads * n_blocks);
    elements.run(job / (v_heads * n_blocks), of_sequence / n_blocks, of_sequence % n_blocks,
                 spare + thread * size);
  });
}

}  // namespace fp8kv
