// The functions that GpuBackend calls: one per op, which chooses a kernel and launches it. Callers
// have checked the arguments. Sizes are those of backend/backend.h, and pointers are the device's.
#pragma once

#include "core/cache/paged.h"
#include "core/model/block.h"
#include "core/model/experts.h"
#include "core/model/quantised_matrix.h"
#include "core/model/recurrence.h"
#include "kernels/device/gpu.h"

namespace fp8kv::FP8KV_GPU {

// A matrix of elements of type `dtype`.
struct Matrix {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
};

struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
};

// See Batch.
struct Rows {
  const int32_t* positions = nullptr;   // [n]
  const int32_t* slots = nullptr;       // [n]
  const int32_t* indptr = nullptr;      // [n_seqs + 1]
  const int32_t* page_table = nullptr;  // [n_seqs, max_pages]
  int32_t n = 0;
  int32_t n_seqs = 0;
  int32_t max_pages = 0;
};

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
  bool weight_f32 = false;  // rmsnorm only: weights are f32, x is not
  int64_t kinds = 1;
};

// out = x / rms(x) * weight.   x, out [n, dim]; all of one type
void rmsnorm(Stream stream, const ConstMatrix& x, const NormWeights& norm, void* out);
// out = (x - mean) / deviation * weight + bias.   Shapes and types as for rmsnorm
void layernorm(Stream stream, const ConstMatrix& x, const NormWeights& norm, void* out);

// x = activation(x) * up, or activation(x) if `up` is null.   `count` elements of one type
void activate(Stream stream, DType dtype, Activation activation, int64_t count, void* x,
              const void* up);

// x += multiplier * y.   `count` elements of one type
void add(Stream stream, DType dtype, int64_t count, void* x, const void* y, float multiplier);

// x = multiplier * x, or cap * tanh(multiplier * x / cap) if cap is not 0.   `count` elements
void scale(Stream stream, DType dtype, int64_t count, void* x, float multiplier, float cap);

// out = max(out, bits of the largest |x|).   `count` elements
void amax(Stream stream, DType dtype, int64_t count, const void* x, uint64_t* out);

inline constexpr int kMaxProducts = 3;

// out = x weight^T + bias, or out += with `accumulate`.
struct Product {
  const void* weight = nullptr;  // [out_dim, in_dim], x's type
  const void* bias = nullptr;    // [out_dim], x's type; may be null
  void* out = nullptr;           // [n, out_dim], x's type or f32
  int64_t out_dim = 0;
  bool accumulate = false;
  bool out_f32 = false;
};

struct Products {
  const void* x = nullptr;  // [n, in_dim]
  int64_t n = 0;
  int64_t in_dim = 0;
  Product each[kMaxProducts];
  int count = 0;
};

class GemmLibrary;

// `computed_as`: the number of rows that the kernel is chosen for; 0: the actual number.
void linear(Stream stream, GemmLibrary& library, DType dtype, const Products& products,
            int64_t computed_as);

// For each head, some of its elements times a matrix of its own. All of one type.
struct HeadProducts {
  const void* x = nullptr;        // [n, n_heads, x_width]; uses in_dim from x_first on
  const void* weights = nullptr;  // [n_heads, out_dim, in_dim]
  void* out = nullptr;            // [n, n_heads, out_width]; sets out_dim from out_first on
  int64_t n = 0;
  int64_t n_heads = 0;
  int64_t in_dim = 0;
  int64_t out_dim = 0;
  int64_t x_width = 0;
  int64_t x_first = 0;
  int64_t out_width = 0;
  int64_t out_first = 0;
};

void linear_heads(Stream stream, DType dtype, const HeadProducts& args);

// Copies `columns` elements of each row. Both of one type.
struct HeadCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_width = 0;
  int64_t to_width = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

void copy_columns(Stream stream, DType dtype, const HeadCopy& args);

// The f32 scale of the code at (r, c): scales[r / block_rows * groups + c / block_columns].
struct CodeScales {
  const float* scales = nullptr;
  int32_t block_rows = 1;
  int32_t block_columns = 1;
  int32_t groups = 1;
};

// Products with FP8 codes as weights, all of one format.
struct CodedProducts {
  Products products;
  CodeScales scales[kMaxProducts];
  Fp8Format format = Fp8Format::e4m3fn;
};

// Whether linear_codes takes products of x in this type with the matrix.
bool takes_codes(const QuantisedMatrix& matrix, DType dtype);

// linear for codes. It gives the bits of `linear` with decoded weights, if no library multiplies
// these.
void linear_codes(Stream stream, DType dtype, const CodedProducts& coded, int64_t computed_as);

// Decodes scales to `to` [row blocks, groups] f32; see scale_value.
void decode_scales(Stream stream, const QuantisedMatrix& matrix, float* to);

// Products of rows that the kernel normalises itself. `products.x` is where `linear` would read the
// normalised rows; it is not touched.
struct NormedProducts {
  const void* x = nullptr;  // [n, in_dim]
  NormWeights norm;         // for rmsnorm
  Products products;
};

// Whether project_append and hidden take these. Both give the same bits as rmsnorm, linear and the
// op that follows, so either way may be chosen at any time.
bool takes_fused(DType dtype, const NormedProducts& normed, int64_t computed_as);

// Whether `hidden` has a kernel for the activation, and is faster for so many columns than separate
// launches.
bool takes_hidden(Activation activation, int64_t columns, int multiprocessors);

// gate = activation(gate) * up, for gate and up as products of the normalised rows. up's memory is
// not touched. REQUIRES takes_fused and takes_hidden.
void hidden(Stream stream, DType dtype, Activation activation, const NormedProducts& normed,
            int multiprocessors);

struct RopeArguments {
  void* q = nullptr;               // [n, n_heads, head_dim], activations
  void* k = nullptr;               // [n, n_kv_heads, k_dim], activations
  void* v = nullptr;               // [n, n_kv_heads, v_dim], activations
  const float* rope = nullptr;     // [max_positions, rotary_dim]
  const float* q_rope = nullptr;   // [max_positions, rotary_dim]: for Q
  uint64_t* magnitudes = nullptr;  // [3, n_kv_heads, kMagnitudeWords]; null: not observed
  Rows rows;
  PagedKv kv;
  int32_t n_heads = 0;
  int32_t group = 0;  // query heads per KV head; all of them, if K has no heads
  int32_t rotary_dim = 0;
  int32_t k_dim = 0;  // head_dim unless V is a part of K; project_append takes only head_dim
  int32_t v_dim = 0;
  RopePairs pairs = RopePairs::halves;
  DType round_to = DType::f32;
};

void rope_append(Stream stream, DType activations, const RopeArguments& arguments);

// Stores rows that are not elements of one type: K, which is rotated by then, and V. It is the
// second half of rope_append for such caches. REQUIRES kv heads.
void append_rows(Stream stream, DType activations, const RopeArguments& arguments);

// rope_append with Q, K and V of `arguments` as products of the normalised rows. REQUIRES
// takes_fused, and nothing observed.
void project_append(Stream stream, DType dtype, const NormedProducts& normed,
                    const RopeArguments& arguments, int multiprocessors);

struct AttentionArguments {
  const void* q = nullptr;  // [n, n_heads, head_dim], activations
  void* out = nullptr;      // [n, n_heads, head_dim], activations
  Rows rows;
  PagedKv kv;
  int32_t n_heads = 0;
  float scale = 1.0f;
  int64_t window = 0;
};

// Optional changes to scores: see AttentionOptions.
struct ScoreOptions {
  int64_t chunk = 0;
  float cap = 0.0f;             // 0: no cap
  const float* bias = nullptr;  // [n_heads, positions]; may be null
  int64_t positions = 0;
  const void* sinks = nullptr;  // [n_heads], activations; may be null
};

// The largest V that attention_any has room for: latents, and the global heads of Gemma 4.
inline constexpr int kMostHeadDim = 512;
// The largest head of a cache in a rotated format.
inline constexpr int kMostRotatedDim = 256;

// Attention for any types and formats, and any even head size up to kMostHeadDim: one warp per row
// and head. Specialised kernels take fewer cases. Only this one takes scores with a cap or a bias,
// sinks, chunks, and caches of latents.
void attention_any(Stream stream, DType activations, const AttentionArguments& arguments,
                   const ScoreOptions& scores);

// Whether the kernels below take these types, this head size and these addresses.
bool takes_fast_attention(DType activations, const AttentionArguments& arguments);

// Whether each sequence has few enough rows for attention_decode. `computed_as`: the rows per
// sequence to assume; 0: the actual number.
bool takes_decode(const AttentionArguments& arguments, int64_t computed_as);

// Working memory of attention_decode. `counters` are zero before, and zero again after.
struct DecodeScratch {
  float* partials = nullptr;
  float* states = nullptr;
  uint32_t* counters = nullptr;
};

// The elements of DecodeScratch that a call needs.
struct DecodeSizes {
  size_t partials;
  size_t states;
  size_t counters;
};

DecodeSizes decode_sizes(const AttentionArguments& arguments);

// Attention row by row, at the speed of memory. REQUIRES takes_fast_attention and
// takes_decode.
void attention_decode(Stream stream, DType activations, const AttentionArguments& arguments,
                      const DecodeScratch& scratch, int multiprocessors);

// Attention for any number of rows of each sequence. REQUIRES takes_fast_attention.
void attention_prefill(Stream stream, DType activations, const AttentionArguments& arguments);

// See Backend::route.
struct RouteArguments {
  const float* logits = nullptr;  // [n, count]
  // [count], both of one type; each may be null.
  const void* choice_bias = nullptr;
  const void* factors = nullptr;
  DType terms_dtype = DType::f32;
  int32_t* ids = nullptr;      // [n, per_token]
  float* weights = nullptr;    // [n, per_token]
  uint64_t* counts = nullptr;  // [count]; may be null
  int32_t count = 0;           // experts
  int32_t per_token = 0;
  RouterScore score = RouterScore::softmax;
  bool normalise = false;
  float epsilon = 0.0f;
  float scale = 1.0f;
  int32_t groups = 1;
  int32_t groups_kept = 1;
  GroupWorth group_worth = GroupWorth::two_largest;
};

void route(Stream stream, int64_t n, const RouteArguments& arguments);

// Rows [first, end) of the sorted rows, all sent to one expert; -1: no rows.
struct ExpertTile {
  int32_t expert;
  int32_t first;
  int32_t end;
};

// Working memory of experts(). Sent rows are sorted by expert, which gives each a place.
struct ExpertScratch {
  int32_t* counts = nullptr;    // [experts]: rows sent to each
  int32_t* places = nullptr;    // [sent]: place of choice i % per_token of row i / per_token
  int32_t* rows = nullptr;      // [sent]: by place
  float* weights = nullptr;     // [sent]: factors of the experts' inputs, by place
  ExpertTile* tiles = nullptr;  // [tiles]
  void* hidden = nullptr;       // [sent, hidden_dim], x's type, by place
  float* made = nullptr;        // [sent, dim], by place
};

// See Backend::experts.
struct ExpertArguments {
  const void* x = nullptr;              // [n, dim]
  void* out = nullptr;                  // [n, dim], x's type
  const int32_t* ids = nullptr;         // [n, per_token]
  const float* weights = nullptr;       // [n, per_token]
  const uint64_t* addresses = nullptr;  // [3, experts], matrices of x's type; 0: no gate
  int64_t n = 0;
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  int64_t sent = 0;   // n * per_token
  int64_t tiles = 0;  // expert_tiles
  int32_t experts = 0;
  int32_t per_token = 0;
  bool weigh_input = false;
  bool gated = true;
  const void* biases[3] = {};  // gate, up and down, x's type: see ExpertBiases; may be null
  bool clamped = false;        // gate and up go through `swiglu`, not through the activation
  ClampedSwiglu swiglu;
  uint64_t* down_amax = nullptr;  // [experts]: see ExpertMatrices; may be null
  ExpertScratch scratch;
};

// The most tiles that this many sent rows can take.
int64_t expert_tiles(int64_t sent, int64_t experts);

void experts(Stream stream, DType dtype, Activation activation, const ExpertArguments& arguments);

// x = x * sigmoid(gates), row by row.   x [n, dim]; gates [n]
void gate_rows(Stream stream, const Matrix& x, const float* gates);

// See Backend's ops of the same names. `weight` and `like` have x's type.
void scale_columns(Stream stream, const Matrix& x, const void* weight);
void match_rms(Stream stream, const Matrix& x, const void* like);
void cut_below(Stream stream, const Matrix& x, float deviations);

// x [rows, from, dim], y [rows, to, dim]; shares [rows, to * from]. REQUIRES up to kMostStreams.
struct StreamMix {
  int64_t rows = 0;
  int64_t from = 0;
  int64_t to = 0;
  int64_t dim = 0;
};
void mix_streams(Stream stream, DType dtype, const void* x, const float* shares, float more,
                 void* y, const StreamMix& mix);

// The places of the states of a step's sequences: see Batch.
struct StateRows {
  const int32_t* positions = nullptr;  // [n]
  const int32_t* indptr = nullptr;     // [n_seqs + 1]
  const int32_t* slots = nullptr;      // [n_seqs]; null: no state is kept
  int32_t n_seqs = 0;
};

// See CausalConv. REQUIRES width <= kMostConvWidth.
struct ConvArguments {
  void* x = nullptr;             // [n, channels]
  const void* weight = nullptr;  // [channels, width], x's type
  const void* bias = nullptr;    // [channels], x's type; may be null
  float* state = nullptr;        // [slots, width - 1, channels]
  StateRows rows;
  int64_t channels = 0;
  int32_t width = 0;
};

void causal_conv(Stream stream, DType dtype, const ConvArguments& arguments);

// See Recurrence. REQUIRES k_dim <= kMostStateRows.
struct RecurrenceArguments {
  const void* q = nullptr;          // [n, k_heads, k_dim]
  const void* k = nullptr;          // [n, k_heads, k_dim], q's type
  const void* v = nullptr;          // [n, v_heads, v_dim], q's type
  const float* step = nullptr;      // [n, v_heads]
  const float* strength = nullptr;  // [n, v_heads]; may be null
  const void* a_log = nullptr;      // [v_heads], a_log_dtype
  const void* step_bias = nullptr;  // [v_heads], step_bias_dtype
  const void* skip = nullptr;       // [v_heads], skip_dtype; may be null
  float* state = nullptr;           // [slots, v_heads, blocks, k_dim, kStateColumns]
  void* out = nullptr;              // [n, v_heads, v_dim], q's type
  StateRows rows;
  DType a_log_dtype = DType::f32;
  DType step_bias_dtype = DType::f32;
  DType skip_dtype = DType::f32;
  float least_step = 0.0f;
  float most_step = 0.0f;
  StateUpdate update = StateUpdate::delta;
  bool unit = false;
  int32_t k_heads = 0;
  int32_t k_dim = 0;
  int32_t v_heads = 0;
  int32_t v_dim = 0;
};

void recur(Stream stream, DType dtype, const RecurrenceArguments& arguments);

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
