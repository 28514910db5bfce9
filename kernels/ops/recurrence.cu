// The two ops of layers that keep a state. Both take a sequence's rows in turn, so that results
// have the same bits however rows are cut into steps.
#include "kernels/blocks/activation.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_states.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kConvThreads = 256;
constexpr int kColumns = static_cast<int>(kStateColumns);

// The rows of a sequence, and the slot of its state.
struct OfSequence {
  int first;
  int end;
  bool begins;   // starts from a state of zeros
  int64_t slot;  // -1: the state is not kept
};

__device__ inline OfSequence of_sequence(const StateRows& rows, int sequence) {
  OfSequence of;
  of.first = rows.indptr[sequence];
  of.end = rows.indptr[sequence + 1];
  of.begins = of.first == of.end || rows.positions[of.first] == 0;
  of.slot = rows.slots == nullptr ? -1 : rows.slots[sequence];
  return of;
}

// One thread per sequence and channel, for all rows. `before` ends with the previous token.
// A dilated convolution may reach further back, which takes registers.
template <typename T, bool kDilated>
__global__ void causal_conv_kernel(ConvArguments arguments) {
  constexpr int kTokensBefore = static_cast<int>(kDilated ? kMostConvBefore : kMostConvWidth - 1);
  after_previous();
  const int64_t item = static_cast<int64_t>(block_index().x) * kConvThreads + thread_index();
  const int64_t channels = arguments.channels;
  if (item >= channels * arguments.rows.n_seqs) return;
  const int64_t channel = item % channels;
  const OfSequence of = of_sequence(arguments.rows, static_cast<int>(item / channels));
  const int last = arguments.width - 1, step = kDilated ? arguments.dilation : 1;
  const int kept = last * step, unused = kTokensBefore - kept;
  const auto weight_at = [&](int tap) {
    return number_at(arguments.weight, arguments.weight_dtype, channel * arguments.width + tap);
  };
  float* state = of.slot < 0 ? nullptr : arguments.state + of.slot * kept * channels + channel;
  float bias = 0.0f;
  if (arguments.bias != nullptr) bias = static_cast<const T*>(arguments.bias)[channel].value();
  float before[kTokensBefore], taps[kTokensBefore];
#pragma unroll
  for (int j = 0; j < kTokensBefore; ++j) {
    const bool used = j >= unused;
    const bool tapped = used && (j - unused) % step == 0;
    taps[j] = tapped ? weight_at((j - unused) / step) : 0.0f;
    before[j] = used && !of.begins ? state[(j - unused) * channels] : 0.0f;
  }
  // The input itself may be added to what the last tap makes of it.
  const float last_tap = weight_at(last) + (arguments.adds_input ? 1.0f : 0.0f);
  T* x = static_cast<T*>(arguments.x) + channel;
  const T *in_gate = static_cast<const T*>(arguments.in_gate),
          *out_gate = static_cast<const T*>(arguments.out_gate);
  for (int64_t row = of.first; row < of.end; ++row) {
    const int64_t at = row * channels + channel;
    float value = x[row * channels].value();
    if (in_gate != nullptr) value *= in_gate[at].value();
    float sum = bias;
#pragma unroll
    for (int j = 0; j < kTokensBefore; ++j) sum = fused(taps[j], before[j], sum);
    sum = fused(last_tap, value, sum);
#pragma unroll
    for (int j = 0; j + 1 < kTokensBefore; ++j) before[j] = before[j + 1];
    before[kTokensBefore - 1] = value;
    if (arguments.silu) sum = activated<Activation::silu>(sum);
    if (out_gate != nullptr) sum *= out_gate[at].value();
    x[row * channels] = T::of(sum);
  }
  if (of.slot < 0) return;
#pragma unroll
  for (int j = 0; j < kTokensBefore; ++j) {
    if (j >= unused) state[(j - unused) * channels] = before[j];
  }
}

// Shared memory of a block of recur_kernel: the state, Q and K, and the decays of rows.
constexpr size_t recur_bytes(int k_dim, bool by_row) {
  const int columns = kColumns + (by_row ? 3 : 2);
  return (static_cast<size_t>(k_dim * columns) * sizeof(float) + 15) / 16 * 16;
}

// The clamped time step number `at`. A NaN stays.
__device__ inline float step_at(const RecurrenceArguments& arguments, int64_t at, float bias) {
  const float raw = arguments.step[at] + bias;
  const float free = raw > 20.0f ? raw : log1p_exact(exp_exact(raw));
  const float least = free < arguments.least_step ? arguments.least_step : free;
  return least > arguments.most_step ? arguments.most_step : least;
}

// The decay of a row of a state, by its own step. `rate` is below 0.
__device__ inline float row_decay(const RecurrenceArguments& arguments, int64_t at, float bias,
                                  float rate) {
  if (arguments.least_log_decay == 0.0f) return exp_exact(rate * step_at(arguments, at, bias));
  const float raw = arguments.step[at] + bias;
  return exp_exact(arguments.least_log_decay * activated<Activation::sigmoid>(-rate * raw));
}

// One warp per sequence, head of V and block of columns; a lane has one column, or none.
template <typename T, bool kByRow>
__global__ void recur_kernel(RecurrenceArguments arguments) {
  after_previous();
  Shared shared;
  const int k_dim = arguments.k_dim, lane = lane_index();
  const bool has_column = lane < kColumns;
  float* state = shared.take<float>(k_dim * (kColumns + (kByRow ? 3 : 2)));
  float* q = state + k_dim * kColumns;
  float* k = q + k_dim;
  float* decays = k + k_dim;  // of rows
  const int block = block_index().x, head = block_index().y;
  const int n_blocks = grid_size().x, v_heads = arguments.v_heads;
  const OfSequence of = of_sequence(arguments.rows, block_index().z);
  const int64_t before = ((of.slot * v_heads + head) * n_blocks + block) * k_dim;
  float* kept = of.slot < 0 ? nullptr : arguments.state + before * kColumns;
  const int column = block * kColumns + lane;
  const bool counts = has_column && column < arguments.v_dim;
  if (has_column) {
    for (int i = 0; i < k_dim; ++i) {
      state[i * kColumns + lane] = of.begins ? 0.0f : kept[i * kColumns + lane];
    }
  }
  const int k_head = head / (v_heads / arguments.k_heads);
  const float rate = -exp_exact(number_at(arguments.a_log, arguments.a_log_dtype, head));
  const auto bias_at = [&](int64_t i) {
    return number_at(arguments.step_bias, arguments.step_bias_dtype, i);
  };
  const float bias = kByRow ? 0.0f : bias_at(head);
  const bool skips = arguments.skip != nullptr;
  const float skip = skips ? number_at(arguments.skip, arguments.skip_dtype, head) : 0.0f;
  for (int64_t row = of.first; row < of.end; ++row) {
    const int64_t k_at = (row * arguments.k_heads + k_head) * k_dim;
    float squares_q = 0.0f, squares_k = 0.0f, product = 0.0f;
    for (int i = lane; i < k_dim; i += kWarp) {
      q[i] = static_cast<const T*>(arguments.q)[k_at + i].value();
      k[i] = static_cast<const T*>(arguments.k)[k_at + i].value();
      squares_q = fused(q[i], q[i], squares_q);
      squares_k = fused(k[i], k[i], squares_k);
      product = fused(q[i], k[i], product);
    }
    product = warp_sum(product);
    if (arguments.unit) {
      const auto eps = static_cast<float>(kUnitEps);
      const float of_q =
          rsqrt_exact(warp_sum(squares_q) + eps) * rsqrt_exact(static_cast<float>(k_dim));
      const float of_k = rsqrt_exact(warp_sum(squares_k) + eps);
      for (int i = lane; i < k_dim; i += kWarp) {
        q[i] *= of_q;
        k[i] *= of_k;
      }
      product *= of_q * of_k;
    }
    const int64_t at = row * v_heads + head;
    if constexpr (kByRow) {
      for (int i = lane; i < k_dim; i += kWarp) {
        decays[i] = row_decay(arguments, at * k_dim + i, bias_at(int64_t{head} * k_dim + i), rate);
      }
    }
    warp_sync();
    const float step = kByRow ? 0.0f : step_at(arguments, at, bias);
    const float decay = kByRow ? 1.0f : exp_exact(rate * step);
    const float strength =
        arguments.strength == nullptr
            ? step
            : arguments.most_strength * activated<Activation::sigmoid>(arguments.strength[at]);
    if (has_column) {
      float of_k = 0.0f, of_q = 0.0f;
      for (int i = 0; i < k_dim; ++i) {
        float& cell = state[i * kColumns + lane];
        if constexpr (kByRow) cell *= decays[i];
        of_k = fused(cell, k[i], of_k);
        of_q = fused(cell, q[i], of_q);
      }
      const int64_t v_at = at * arguments.v_dim + column;
      const float v = counts ? static_cast<const T*>(arguments.v)[v_at].value() : 0.0f;
      const float known = arguments.update == StateUpdate::delta ? decay * of_k : 0.0f;
      const float delta = (v - known) * strength;
      if (counts) {
        const float read = fused(decay, of_q, product * delta);
        static_cast<T*>(arguments.out)[v_at] = T::of(skips ? fused(skip, v, read) : read);
      }
      for (int i = 0; i < k_dim; ++i) {
        float& cell = state[i * kColumns + lane];
        cell = fused(cell, decay, k[i] * delta);
      }
    }
    warp_sync();
  }
  if (of.slot < 0 || !has_column) return;
  for (int i = 0; i < k_dim; ++i) kept[i * kColumns + lane] = state[i * kColumns + lane];
}

// Shared memory of a block of recur_elements_kernel: the state and its rates, Q and K.
constexpr size_t recur_elements_bytes(int k_dim) {
  return (static_cast<size_t>(k_dim * (2 * kColumns + 2)) * sizeof(float) + 15) / 16 * 16;
}

// Each column has a step, and each element of a state a rate.   Same blocks as recur_kernel.
template <typename T>
__global__ void recur_elements_kernel(RecurrenceArguments arguments) {
  after_previous();
  Shared shared;
  const int k_dim = arguments.k_dim, lane = lane_index();
  float* state = shared.take<float>(k_dim * (2 * kColumns + 2));
  float* rates = state + k_dim * kColumns;
  float* q = rates + k_dim * kColumns;
  float* k = q + k_dim;
  const int block = block_index().x, head = block_index().y;
  const int n_blocks = grid_size().x, v_heads = arguments.v_heads;
  const OfSequence of = of_sequence(arguments.rows, block_index().z);
  const int64_t before = ((of.slot * v_heads + head) * n_blocks + block) * k_dim;
  float* kept = of.slot < 0 ? nullptr : arguments.state + before * kColumns;
  const int column = block * kColumns + lane;
  const bool has_column = lane < kColumns, counts = has_column && column < arguments.v_dim;
  const int64_t channel = int64_t{head} * arguments.v_dim + column;
  for (int i = 0; has_column && i < k_dim; ++i) {
    state[i * kColumns + lane] = of.begins ? 0.0f : kept[i * kColumns + lane];
    if (!counts) continue;
    rates[i * kColumns + lane] =
        -exp_exact(number_at(arguments.a_log, arguments.a_log_dtype, channel * k_dim + i));
  }
  const auto number = [&](const void* from, DType dtype) {
    return counts && from != nullptr ? number_at(from, dtype, channel) : 0.0f;
  };
  const float bias = number(arguments.step_bias, arguments.step_bias_dtype);
  const bool skips = arguments.skip != nullptr;
  const float skip = number(arguments.skip, arguments.skip_dtype);
  const int k_head = head / (v_heads / arguments.k_heads);
  for (int64_t row = of.first; row < of.end; ++row) {
    const int64_t k_at = (row * arguments.k_heads + k_head) * k_dim;
    for (int i = lane; i < k_dim; i += kWarp) {
      q[i] = static_cast<const T*>(arguments.q)[k_at + i].value();
      k[i] = static_cast<const T*>(arguments.k)[k_at + i].value();
    }
    warp_sync();
    if (counts) {
      const int64_t at = row * v_heads * arguments.v_dim + channel;
      const float step = step_at(arguments, at, bias);
      const float v = static_cast<const T*>(arguments.v)[at].value(), taken = v * step;
      float read = 0.0f;
      for (int i = 0; i < k_dim; ++i) {
        float& cell = state[i * kColumns + lane];
        cell = fused(cell, exp_exact(rates[i * kColumns + lane] * step), k[i] * taken);
        read = fused(q[i], cell, read);
      }
      static_cast<T*>(arguments.out)[at] = T::of(skips ? fused(skip, v, read) : read);
    }
    warp_sync();
  }
  if (of.slot < 0 || !has_column) return;
  for (int i = 0; i < k_dim; ++i) kept[i * kColumns + lane] = state[i * kColumns + lane];
}

}  // namespace

void causal_conv(Stream stream, DType dtype, const ConvArguments& arguments) {
  with_compute_type(dtype, [&]<typename T>(T) {
    const int64_t items = arguments.channels * arguments.rows.n_seqs;
    const bool far = arguments.dilation > 1 || arguments.width > kMostConvWidth;
    launch("causal_conv", far ? causal_conv_kernel<T, true> : causal_conv_kernel<T, false>,
           {static_cast<unsigned>((items + kConvThreads - 1) / kConvThreads)}, kConvThreads, 0,
           stream, arguments);
  });
}

void recur(Stream stream, DType dtype, const RecurrenceArguments& arguments) {
  with_compute_type(dtype, [&]<typename T>(T) {
    const Grid grid{static_cast<unsigned>(state_blocks(arguments.v_dim)),
                    static_cast<unsigned>(arguments.v_heads),
                    static_cast<unsigned>(arguments.rows.n_seqs)};
    if (arguments.by_element) {
      return launch("recur", recur_elements_kernel<T>, grid, kWarp,
                    recur_elements_bytes(arguments.k_dim), stream, arguments);
    }
    const auto kernel = arguments.by_row ? recur_kernel<T, true> : recur_kernel<T, false>;
    launch("recur", kernel, grid, kWarp, recur_bytes(arguments.k_dim, arguments.by_row), stream,
           arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
