// Launches of ops that take each row, or each element, by itself. Callers have checked the
// arguments; pointers are the device's, and sizes are those of backend/backend.h.
#pragma once

#include "core/model/block.h"
#include "core/model/streams.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {

// out[i] = table[ids[i]].   table [rows, dim]; ids [n]; out [n, dim], any compute types
void embed(Stream stream, const ConstMatrix& table, const int32_t* ids, const Matrix& out);

// to[i][j] = from[i * row_step + j * column_step].   to [rows, cols], both of one type
void arrange(Stream stream, const void* from, int64_t row_step, int64_t column_step,
             const Matrix& to);

// to = the weights of `matrix`; see weight_value.   to [rows, columns] of `dtype`
void decode_weights(Stream stream, const QuantisedMatrix& matrix, DType dtype, void* to);

// See Norm.
struct NormWeights {
  const void* weight = nullptr;  // [kinds, dim]; row i takes weights i % kinds
  const void* bias = nullptr;    // [dim]; may be null; layernorm only
  float weight_offset = 0.0f;
  float eps = 0.0f;
  bool weight_f32 = false;  // weight and bias are f32, x is not
  int64_t kinds = 1;
};

// out = x / rms(x) * weight.   x, out [n, dim]; all of one type
void rmsnorm(Stream stream, const ConstMatrix& x, const NormWeights& norm, void* out);
// out = (x - mean) / deviation * weight + bias.   Shapes and types as for rmsnorm
void layernorm(Stream stream, const ConstMatrix& x, const NormWeights& norm, void* out);

// Numbers of a compute type, taken one by one.
struct Elements {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t count = 0;
};
struct ConstElements {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t count = 0;
};

// x = activation(x) * up, or activation(x) if `up` is null.   `up` like x
void activate(Stream stream, Activation activation, const Elements& x, const void* up);

// gate = the clamped SwiGLU of gate and up.   `up` like gate
void clamped_swiglu(Stream stream, const ClampedSwiglu& how, const Elements& gate, const void* up);

// x += multiplier * y.   y like x
void add(Stream stream, const Elements& x, const void* y, float multiplier);

// x = multiplier * x, or cap * tanh(multiplier * x / cap) if cap is not 0.
void scale(Stream stream, const Elements& x, float multiplier, float cap);

// x = xIELU(x).
void xielu(Stream stream, const Elements& x, const Xielu& numbers);

// out = max(out, bits of the largest |x|).
void amax(Stream stream, const ConstElements& x, uint64_t* out);

// x = x * sigmoid(gates), row by row.   x [n, dim]; gates [n]
void gate_rows(Stream stream, const Matrix& x, const float* gates);

// See ColumnFactors.
struct ColumnWeights {
  const void* weight = nullptr;  // [dim]
  float offset = 0.0f;
  bool weight_f32 = false;  // else x's type
};

// See Backend's ops of the same names. `like` has x's type.
void scale_columns(Stream stream, const Matrix& x, const ColumnWeights& by);
void match_rms(Stream stream, const Matrix& x, const void* like);
void cut_below(Stream stream, const Matrix& x, float deviations);

// See Backend::mix_streams. REQUIRES up to kMostMixed.
struct StreamMix {
  int64_t rows = 0;
  int64_t from = 0;
  int64_t to = 0;
  int64_t dim = 0;
};
struct MixedStreams {
  DType dtype = DType::f32;
  const void* x = nullptr;        // [rows, from, dim]
  const float* shares = nullptr;  // [rows, to * from]
  void* y = nullptr;              // [rows, to, dim]
};
void mix_streams(Stream stream, const MixedStreams& streams, const StreamSum& how,
                 const StreamMix& mix);

// See Backend::hyper_shares. REQUIRES up to kMostStreams.
struct HyperArguments {
  const void* x = nullptr;          // [n, count * dim]
  const float* products = nullptr;  // [n, width]
  const void* scale = nullptr;      // [1 to 3], scale_dtype
  const void* base = nullptr;       // [width], base_dtype
  float* read = nullptr;            // [n, count]
  float* write = nullptr;           // [n, count]; null: these have no products
  float* mix = nullptr;             // [n, count * count]; null: the same
  DType scale_dtype = DType::f32;
  DType base_dtype = DType::f32;
  int32_t count = 0;
  int64_t dim = 0;
  float norm_eps = 0.0f;
  float eps = 0.0f;
  float eps_written = 0.0f;
  float most_written = 0.0f;
  int32_t rounds = 0;
};
void hyper_shares(Stream stream, DType dtype, int64_t n, const HyperArguments& arguments);

// See Backend::stream_gates.   keys, queries [rows, dim]; gates [rows]
void stream_gates(Stream stream, const ConstMatrix& keys, const void* queries, float* gates);

// See Sampling.
struct SampleArguments {
  const float* logits = nullptr;  // [n, vocab_size]
  const float* temperature = nullptr;
  const int32_t* top_k = nullptr;
  const float* top_p = nullptr;
  const uint64_t* seed = nullptr;
  const int32_t* position = nullptr;
  int32_t* ids = nullptr;  // [n]
  int32_t vocab_size = 0;
};

void sample(Stream stream, int64_t n, const SampleArguments& arguments);

}  // namespace fp8kv::FP8KV_GPU
