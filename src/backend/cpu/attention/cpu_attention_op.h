// Declarations that the parts of attention share: see cpu_attention.cpp. Internal to backend/cpu.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/isa/common/cpu_kernels.h"
#include "backend/cpu/memory/cpu_memory.h"
#include "core/numbers/softmax_state.h"

namespace fp8kv::attention {

// Tokens whose scores are computed at a time. Blocks begin at multiples of this.
constexpr int64_t kBlockTokens = kTileStride;
// Tokens whose softmax is one online pass; longer contexts are merged from chunks, in order. A
// constant, so that a row is always computed in the same way.
constexpr int64_t kChunkTokens = 2 * kBlockTokens;
constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Rows of one sequence as one KV head sees them, with `group` query heads each.
struct Span {
  int64_t sequence;
  int64_t kv_head;
  int64_t first_row;
  int64_t n_rows;
};

struct Op {
  const CpuKernels& kernels;
  const float* q;  // [n, n_heads, head_dim], rotated if the cache is
  float* out;
  const PagedKv& kv;
  const Batch& batch;
  const AttentionOptions& options;
  int64_t n_heads;
  int64_t group;
  int64_t head_dim;    // size of a head of Q and K
  int64_t v_dim;       // size of a head of V and of the output
  int64_t padded_dim;  // v_dim in whole strips
  bool by_unit;        // by the matrix unit
  bool as_floats;      // rows are decoded to f32 first: those that are not elements of one type
  DType element;       // type of K and V as they are read: f32 with as_floats
  int64_t element_bytes;
  // Tokens from a key to the next one, of which it is the last: TokenScores::pooled.
  int64_t key_step = 1;
  // DistanceBias::bank in f32, each row from the farthest distance to 0. Null: there is none.
  const float* bank = nullptr;

  // Bytes of a row of K; a row of V has no more.
  int64_t row_bytes() const { return head_dim * element_bytes; }
  // Floats of a token's decoded K, plus V unless V is a part of K.
  int64_t token_floats() const { return head_dim + (kv.v_in_k > 0 ? 0 : v_dim); }
  int64_t k_blocks() const { return divide_up(head_dim, kTileStride); }
  int64_t position(int64_t row) const { return batch.positions.as<int32_t>()[row]; }
  // The number of tokens before a row and at it, without those that are not chosen. From here on a
  // token's number is its place among them.
  int64_t seen(int64_t row) const {
    const int64_t all = position(row) + 1, block = options.chosen_block;
    if (!options.chosen) return all / key_step;
    // The last block ends at the row itself, or has ended before it.
    const int64_t last = options.chosen_pooled ? all % block : position(row) % block + 1;
    return std::min(all, (chosen_count() - 1) * block + last);
  }
  int64_t chosen_count() const { return options.chosen->shape[options.chosen->shape.rank() - 1]; }
  // The position of the token that is at `place` of those that the span's row sees.
  int64_t position_at(const Span& span, int64_t place) const {
    if (!options.chosen) return place * key_step + key_step - 1;
    const bool by_head = options.chosen->shape.rank() == 3;
    const int64_t list = by_head ? span.first_row * kv.n_kv_heads + span.kv_head : span.first_row;
    const int32_t* chosen = options.chosen->as<int32_t>() + list * chosen_count();
    return chosen[place / options.chosen_block] * options.chosen_block +
           place % options.chosen_block;
  }
  int64_t queries(const Span& span) const { return span.n_rows * group; }
  // How many queries to allocate memory for.
  int64_t padded_queries(int64_t queries) const {
    return by_unit ? divide_up(queries, kUnitWeights) * kUnitWeights : queries;
  }
  const int32_t* pages(const Span& span) const {
    return batch.page_table.as<int32_t>() + span.sequence * batch.page_table.shape[1];
  }
  int64_t row_of(const Span& span, int64_t query) const { return span.first_row + query / group; }
  // The index of a query head among all rows' query heads, in the order of q and out.
  int64_t item(const Span& span, int64_t query) const {
    const int64_t head = span.kv_head * group + query % group;
    return row_of(span, query) * n_heads + head;
  }
  // The bias of the query's head.   [positions]
  const float* bias_of(const Span& span, int64_t query) const {
    const int64_t head = span.kv_head * group + query % group;
    return options.bias->as<float>() + head * options.bias->shape[1];
  }
  // Adds the biases of distances to the scores of tokens [begin, end) of a block, which the query's
  // row sees.
  void add_distances(const Span& span, int64_t query, int64_t begin, int64_t end,
                     float* scores) const {
    const DistanceBias& bias = *options.distances;
    const int64_t dim = bias.dim(), extent = bias.extent(), at = position(row_of(span, query));
    const int64_t first = std::max(begin, at + 1 - extent), count = end - first;
    if (count <= 0) return;
    const float* states = bias.states.as<float>() + item(span, query) * dim;
    std::array<float, kBlockTokens> sums{};
    for (int64_t j = 0; j < dim; ++j) {
      const float* row = bank + (j + 1) * extent - 1 - at + first;
      const float state = states[j];
      for (int64_t t = 0; t < count; ++t) sums[t] += state * row[t];
    }
    const float growth = bias.growth ? bias.growth->as<float>()[at] : 1.0f;
    for (int64_t t = 0; t < count; ++t) scores[first - begin + t] += growth * sums[t];
  }
  // The sink of the query's head: a softmax state without values.
  SoftmaxState sink_of(const Span& span, int64_t query) const {
    if (!options.sinks) return {-__builtin_inff(), 0.0f};
    const int64_t head = span.kv_head * group + query % group;
    float score = 0.0f;
    const auto bytes = static_cast<int64_t>(dtype_bytes(options.sinks->dtype));
    kernels.to_float[options.sinks->dtype](options.sinks->data + head * bytes, 1, &score);
    return {score, 1.0f};
  }
  // The first token that a row sees.
  int64_t first_token(int64_t row) const {
    if (options.chunk > 0) return position(row) / options.chunk * options.chunk;
    if (options.window == 0) return 0;
    return std::max<int64_t>(0, position(row) + 1 - options.window);
  }
  // One past the last token that any row of the span sees.
  int64_t end_token(const Span& span) const { return seen(span.first_row + span.n_rows - 1); }
  int64_t first_chunk(const Span& span) const { return first_token(span.first_row) / kChunkTokens; }
  int64_t end_chunk(const Span& span) const { return divide_up(end_token(span), kChunkTokens); }
};

// A softmax-weighted sum of values for each query, not yet divided by the weights' sum.
struct Partial {
  SoftmaxState* states;  // [queries]
  float* sums;           // [queries, padded_dim]

  static int64_t floats(const Op& op, int64_t queries) {
    return op.padded_queries(queries) * (op.padded_dim + 2);
  }
  static Partial at(const Op& op, float* memory, int64_t queries) {
    return {reinterpret_cast<SoftmaxState*>(memory), memory + 2 * op.padded_queries(queries)};
  }
  void clear(const Op& op, int64_t queries) const {
    std::fill_n(states, queries, SoftmaxState{-__builtin_inff(), 0.0f});
    std::fill_n(sums, op.padded_queries(queries) * op.padded_dim, 0.0f);
  }
};

// A thread's working memory.
struct Work {
  float* tokens;   // [kBlockTokens, token_floats] with as_floats, else none
  float* queries;  // packed for the products
  float* scores;   // [queries, kTileStride]
  float* panel;    // packed keys, weights and values for the products
  Partial chunk;
  Partial total;

  Work(const Op& op, int64_t n, Scratch& scratch);
};

// Addresses of a block's keys and values. Keys past the last one are zeros.
struct BlockRows {
  const std::byte* keys[kBlockTokens + kMaxStrip];
  const std::byte* values[kBlockTokens];
  int64_t count = 0;

  BlockRows() = default;
  BlockRows(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work);
};

// Fetches ahead, since the processor's own prefetching stops at the end of a cache page, which is
// short. `near`: into the first-level cache; `far`: into the second, which takes more requests at a
// time.
enum class Fetch { near, far };
template <Fetch kFetch>
inline void prefetch(const Op& op, const std::byte* const* rows, int64_t count) {
  constexpr int kRead = 0, kCache = kFetch == Fetch::near ? 3 : 2;
  const int64_t row_bytes = op.row_bytes();
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(rows[r] + i, kRead, kCache);
  }
}

// One way to multiply: in strips of vectors, or by a matrix unit. The functions: floats of working
// memory, work before the first block, scores[i][t] = q_i . k_t of a block, and sums[i] += sum of
// weight[i][t] * v_t. `next` is the block that follows; it may have no rows.
struct AttentionKernels {
  int64_t (*query_floats)(const Op& op, int64_t queries);
  int64_t (*panel_floats)(const Op& op, int64_t queries);
  void (*load_queries)(const Op& op, const Span& span, const Work& work);
  void (*score)(const Op& op, const Span& span, const BlockRows& rows, const BlockRows& next,
                const Work& work);
  void (*sum)(const Op& op, const Span& span, const BlockRows& rows, const BlockRows& next,
              const Work& work);
};

extern const AttentionKernels kInStrips;
extern const AttentionKernels kByUnit;

inline const AttentionKernels& kernels_of(const Op& op) {
  return op.by_unit ? kByUnit : kInStrips;
}

}  // namespace fp8kv::attention
