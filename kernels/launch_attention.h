// Launches of what fills the cache and what reads it. Callers have checked the arguments; pointers
// are the device's, and sizes are those of backend/backend.h.
#pragma once

#include "core/cache/paged.h"
#include "kernels/launch_products.h"

namespace fp8kv::FP8KV_GPU {

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

// Stores rows that are not elements of one type, or V narrower than K. K is rotated by then. It is
// the second half of rope_append for such caches. REQUIRES kv heads.
void append_rows(Stream stream, DType activations, const RopeArguments& arguments);

// rope_append with Q, K and V of `arguments` as products of the normalised rows. REQUIRES
// takes_fused, and nothing observed.
void project_append(Stream stream, DType dtype, const NormedProducts& normed,
                    const RopeArguments& arguments, int multiprocessors);

// Optional changes to what a row sees and to its scores: see AttentionOptions.
struct ScoreOptions {
  int32_t chunk = 0;
  float cap = 0.0f;             // 0: no cap
  const float* bias = nullptr;  // [n_heads, positions]; may be null
  int64_t positions = 0;
  // Biases of distances, see DistanceBias; states in the activations' type. May be null.
  const void* distance_states = nullptr;   // [n, n_heads, distance_dim]
  const void* distance_bank = nullptr;     // [distance_dim, distance_extent], bank_dtype
  const float* distance_growth = nullptr;  // [max_positions]; may be null
  DType bank_dtype = DType::f32;
  int32_t distance_dim = 0;
  int32_t distance_extent = 0;
  const void* sinks = nullptr;  // [n_heads], sinks_dtype; may be null
  DType sinks_dtype = DType::f32;
  const int32_t* chosen = nullptr;  // [n, chosen_lists, chosen_count]: see AttentionOptions
  int32_t chosen_count = 0;
  int32_t chosen_lists = 1;  // of each row: one, or one for each KV head
  int32_t chosen_block = 1;
  bool chosen_pooled = false;
  int32_t pool = 0;  // see AttentionOptions; for attention_pools alone
};

struct AttentionArguments {
  const void* q = nullptr;  // [n, n_heads, head_dim], activations
  void* out = nullptr;      // [n, n_heads, v_dim], activations
  Rows rows;
  PagedKv kv;
  ScoreOptions scores;
  int32_t n_heads = 0;
  int32_t v_dim = 0;
  float scale = 1.0f;
  int64_t window = 0;
};

// The largest V that attention_any has room for: latents, and the global heads of Gemma 4.
inline constexpr int kMostHeadDim = 512;
// The largest head of a cache in a rotated format.
inline constexpr int kMostRotatedDim = 256;

// Attention for any types and formats, and any even head size up to kMostHeadDim: one warp per row
// and head. Other kernels take fewer cases.
void attention_any(Stream stream, DType activations, const AttentionArguments& arguments);

// Attention to pooled rows beside the tokens of a window: see AttentionOptions::pool. For the types
// and sizes of attention_any, in one KV head.
void attention_pools(Stream stream, DType activations, const AttentionArguments& arguments);

// See PooledAppend.
struct PooledArguments {
  const void* k = nullptr;       // [n, keys.head_dim], activations
  const void* weight = nullptr;  // [keys.head_dim], weight_dtype
  const float* rope = nullptr;   // [max_positions, rotary_dim]
  Rows rows;
  PagedKv keys;  // elements of the activations' type
  DType weight_dtype = DType::f32;
  float weight_offset = 0.0f;
  float eps = 0.0f;
  int32_t block = 1;
  int32_t rotary_dim = 0;
};

void append_pooled(Stream stream, DType activations, const PooledArguments& arguments);

// See TokenScores.
struct ChoiceArguments {
  const void* q = nullptr;         // [n, n_heads, keys.head_dim], activations
  const float* weights = nullptr;  // [n, n_heads]; null: each head chooses blocks by itself
  float* scores = nullptr;         // [scored_rows, lists, positions]
  int32_t* chosen = nullptr;       // [n, lists, count]
  Rows rows;
  PagedKv keys;  // elements of the activations' type
  int64_t scored_rows = 0;
  int64_t positions = 0;  // or blocks
  int32_t n_heads = 0;
  int32_t lists = 1;  // of a row: one, or one for each head
  int32_t count = 0;
  int32_t block = 1;
  int32_t local_blocks = 0;
  int32_t key_step = 1;  // tokens of a pooled key; more than 1: see TokenScores::pooled
  float scale = 1.0f;
};

void choose_tokens(Stream stream, DType activations, const ChoiceArguments& arguments);

// Whether attention_decode and attention_prefill take these types, this head size, these addresses
// and these options.
bool takes_fast_attention(DType activations, const AttentionArguments& arguments);

// Whether each sequence has few enough rows to cut these over their context. `computed_as`: the
// rows per sequence to assume; 0: the actual number.
bool takes_decode(const AttentionArguments& arguments, int64_t computed_as);

// Working memory for the parts of rows that are cut.
struct DecodeScratch {
  float* partials = nullptr;
  float* states = nullptr;
};

// The elements of DecodeScratch that a call of attention_decode needs.
struct DecodeSizes {
  size_t partials;
  size_t states;
};

DecodeSizes decode_sizes(const AttentionArguments& arguments);

// Attention row by row, at the speed of memory. REQUIRES takes_fast_attention and takes_decode.
void attention_decode(Stream stream, DType activations, const AttentionArguments& arguments,
                      const DecodeScratch& scratch, int multiprocessors);

// Whether attention_prefill takes this cap of scores for this head size.
bool takes_prefill(const AttentionArguments& arguments);

// Attention for any number of rows of each sequence. REQUIRES takes_fast_attention and
// takes_prefill.
void attention_prefill(Stream stream, DType activations, const AttentionArguments& arguments);

// Whether attention_wide takes these types, sizes and addresses.
bool takes_wide(DType activations, const AttentionArguments& arguments);

// The elements of DecodeScratch with which attention_wide cuts rows.
DecodeSizes wide_sizes(const AttentionArguments& arguments);

// Attention by matrix instructions for heads of any multiple of 16 elements from 64 to 576, and V
// up to 512. With memory in `scratch`, rows are cut over their context. REQUIRES takes_wide.
void attention_wide(Stream stream, DType activations, const AttentionArguments& arguments,
                    const DecodeScratch& scratch);

}  // namespace fp8kv::FP8KV_GPU
