// Cuts decode attention into items, of one warp in attention_decode and of one block in
// attention_wide. The cut of a row depends only
// on its own length, so its result has the same bits whatever else is in the batch.
#pragma once

#include "kernels/attention/attention.cuh"
#include "kernels/attention/chosen.cuh"

namespace fp8kv::FP8KV_GPU {

// The number of tokens in a chunk: the smallest power of two that cuts `length` tokens into at most
// 16 chunks, but at least 64 and at most 512. Fewer than 64 tokens are too little work for a warp.
// A partial result takes about 3 % of the time of reading 512 tokens.
__device__ inline int chunk_tokens(int length) {
  int tokens = 64;
  while (tokens < 512 && tokens * 16 < length) tokens *= 2;
  return tokens;
}

constexpr int64_t max_chunks(int64_t length) {
  return length <= 16 * 512 ? 16 : (length + 511) / 512;
}

struct Decode {
  AttentionArguments attention;
  // Memory for partial results; see DecodeScratch.
  float* partials;  // [n, groups, max_chunks, group_heads, v_dim]
  float* states;    // [n, groups, max_chunks, group_heads, 2]: maximum and sum
  int32_t max_chunks;
  int32_t groups;       // KV heads, times the groups their query heads fall into
  int32_t group_heads;  // query heads of a full group
  ScoreCap cap;
  bool bf16;  // activations: else f16
};

// `most_heads`: query heads that an item takes at most.
inline Decode decode_of(DType activations, const AttentionArguments& arguments,
                        const DecodeScratch& scratch, int32_t most_heads) {
  const int32_t kv_heads = arguments.kv.n_kv_heads, share = arguments.n_heads / kv_heads;
  const int64_t most_tokens = int64_t{arguments.rows.max_pages} * arguments.kv.page_size;
  Decode decode;
  decode.attention = arguments;
  decode.partials = scratch.partials;
  decode.states = scratch.states;
  decode.max_chunks = static_cast<int32_t>(max_chunks(most_tokens));
  decode.groups = kv_heads * ((share + most_heads - 1) / most_heads);
  decode.group_heads = share < most_heads ? share : most_heads;
  decode.cap = score_cap(arguments.scores.cap);
  decode.bf16 = activations == DType::bf16;
  return decode;
}

// The memory that `decode` needs for all its partial results.
inline DecodeSizes sizes_of(const Decode& decode) {
  const int64_t states =
      int64_t{decode.attention.rows.n} * decode.groups * decode.max_chunks * decode.group_heads;
  return {static_cast<size_t>(states * decode.attention.v_dim), static_cast<size_t>(2 * states)};
}

// Adds up the partial results of rows that have several chunks.
void combine(Stream stream, const Decode& decode);

// One warp's work: chunk `chunk` of `chunks` of a row, for a group of heads.
struct Item {
  int row;
  int group;
  int chunk;
  int chunks;
  int kv_head;
  int first_head;
  int heads;
  int begin;  // tokens [begin, end) of the sequence
  int end;
  int first_visible;
};

// The places that a row sees: see ChosenTokens.
__device__ inline Visible places_of(const AttentionArguments& attention, int row) {
  return visible_places(attention.scores, visible_at(attention, attention.rows.positions[row]));
}

__device__ inline int chunk_count(const Visible& visible) {
  const int tokens = chunk_tokens(visible.end);
  return (visible.end - 1) / tokens - visible.begin / tokens + 1;
}

// The part of a row that is in chunk `chunk` of it.
__device__ inline Visible chunk_of(const Visible& visible, int chunk) {
  const int tokens = chunk_tokens(visible.end);
  const int start = (visible.begin / tokens + chunk) * tokens;
  return {start > visible.begin ? start : visible.begin,
          start + tokens < visible.end ? start + tokens : visible.end};
}

// ends[row] = the number of chunks in rows 0 to `row` together, for every row.
template <int kWarps>
__device__ inline void count_chunks(const Decode& decode, int* ends, int* warp_sums) {
  const Rows& rows = decode.attention.rows;
  constexpr int kThreads = kWarps * kWarp;
  const int per_thread = (rows.n + kThreads - 1) / kThreads;
  const int first = thread_index() * per_thread;
  const int last = first + per_thread < rows.n ? first + per_thread : rows.n;
  int sum = 0;
  for (int row = first; row < last; ++row) {
    sum += chunk_count(visible_at(decode.attention, rows.positions[row]));
  }
  int before = sum;  // inclusive within the warp
  for (int step = 1; step < kWarp; step *= 2) {
    const int other = warp_from(before, lane_index() - step < 0 ? 0 : lane_index() - step);
    if (lane_index() >= step) before += other;
  }
  if (lane_index() == kWarp - 1) warp_sums[warp_index()] = before;
  block_sync();
  before -= sum;
  for (int warp = 0; warp < warp_index(); ++warp) before += warp_sums[warp];
  for (int row = first; row < last; ++row) {
    before += chunk_count(visible_at(decode.attention, rows.positions[row]));
    ends[row] = before;
  }
  block_sync();
}

__device__ inline Item item_at(const Decode& decode, const int* ends, int number) {
  const AttentionArguments& attention = decode.attention;
  Item item;
  item.group = number % decode.groups;
  const int unit = number / decode.groups;
  int low = 0, high = attention.rows.n - 1;  // the first row whose end is past `unit`
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ends[middle] > unit) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  low = warp_uniform(low);  // so that the row's values are scalars too
  item.row = low;
  const Visible visible = visible_at(attention, warp_uniform(attention.rows.positions[low]));
  item.chunks = chunk_count(visible);
  item.chunk = unit - (warp_uniform(ends[low]) - item.chunks);
  const Visible part = chunk_of(visible, item.chunk);
  item.begin = part.begin / kTileTokens * kTileTokens;
  item.end = part.end;
  item.first_visible = visible.begin;
  const int share = attention.n_heads / attention.kv.n_kv_heads;
  const int per_kv_head = decode.groups / attention.kv.n_kv_heads;
  item.kv_head = item.group / per_kv_head;
  const int within = item.group % per_kv_head * decode.group_heads;
  item.first_head = item.kv_head * share + within;
  item.heads = share - within < decode.group_heads ? share - within : decode.group_heads;
  return item;
}

}  // namespace fp8kv::FP8KV_GPU
