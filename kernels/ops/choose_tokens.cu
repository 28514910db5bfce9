// Chooses the tokens that rows see, for sparse attention: scores them all, finds the score that
// just enough of them reach, and lists these in order.
#include "core/numbers/float_order.h"
#include "kernels/blocks/elements.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/sequence.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kScoreThreads = 128;
constexpr int kHeads = 8;  // heads whose queries are in shared memory at a time
constexpr int kChooseThreads = 256;

// A block scores kScoreThreads tokens of one row, a thread each, or as many pooled keys. `blocks`:
// for each row.
template <typename T>
__global__ void score_tokens_kernel(ChoiceArguments args, int first_row, int blocks) {
  after_previous();
  Shared shared;
  const int head_dim = args.keys.head_dim;
  float* queries = shared.take<float>(static_cast<size_t>(head_dim) * kHeads);
  const int number = static_cast<int>(block_index().x), slot = number / blocks;
  const int row = first_row + slot, begin = number % blocks * kScoreThreads;
  const int step = args.key_step, scored = step > 1 ? args.count - 1 : args.count;
  const int seen = (args.rows.positions[row] + 1) / step;
  if (begin >= seen || seen <= scored) return;
  const int token = begin + thread_index();
  const int at = (token < seen ? token : begin) * step + step - 1;
  const int32_t* pages = args.rows.page_table +
                         static_cast<int64_t>(sequence_of(args.rows, row)) * args.rows.max_pages;
  const T* key = static_cast<const T*>(args.keys.k) +
                 args.keys.offset(pages[at / args.keys.page_size], 0, at % args.keys.page_size);
  const T* q = static_cast<const T*>(args.q) + int64_t{row} * args.n_heads * head_dim;
  const float* weights = args.weights + int64_t{row} * args.n_heads;
  float score = 0.0f;
  for (int head = 0; head < args.n_heads; head += kHeads) {
    block_sync();
    for (int i = thread_index(); i < kHeads * head_dim; i += kScoreThreads) {
      const int own = head + i / head_dim, d = i % head_dim;
      queries[d * kHeads + i / head_dim] =
          own < args.n_heads ? q[own * head_dim + d].value() : 0.0f;
    }
    block_sync();
    float dots[kHeads] = {};
    for (int d = 0; d < head_dim; ++d) {
      const float k = key[d].value();
#pragma unroll
      for (int h = 0; h < kHeads; ++h) dots[h] = fused(queries[d * kHeads + h], k, dots[h]);
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (head + h >= args.n_heads) continue;
      const float scaled = dots[h] * args.scale;
      score += weights[head + h] * (scaled < 0.0f ? 0.0f : scaled);
    }
  }
  if (token < seen) args.scores[int64_t{slot} * args.positions + token] = score;
}

// Each warp scores one block of tokens for one head of a row: its largest q . k. Warps are numbered
// by row, then head, then block.
template <typename T>
__global__ void score_blocks_kernel(ChoiceArguments args, int first_row, int64_t warps) {
  after_previous();
  const int64_t number =
      static_cast<int64_t>(block_index().x) * (kScoreThreads / kWarp) + warp_index();
  if (number >= warps) return;
  const int64_t list = number / args.positions;
  const auto block = static_cast<int>(number % args.positions);
  const int row = first_row + static_cast<int>(list / args.lists);
  const auto head = static_cast<int>(list % args.lists);
  const int position = args.rows.positions[row], own = position / args.block;
  if (block > own || own < args.count) return;
  const int head_dim = args.keys.head_dim;
  const int32_t* pages = args.rows.page_table +
                         static_cast<int64_t>(sequence_of(args.rows, row)) * args.rows.max_pages;
  const T* q = static_cast<const T*>(args.q) + (int64_t{row} * args.n_heads + head) * head_dim;
  const int begin = block * args.block;
  const int end = begin + args.block <= position ? begin + args.block : position + 1;
  float most = own - block < args.local_blocks ? INFINITY : -INFINITY;
  for (int token = begin + lane_index(); token < end; token += kWarp) {
    const T* key =
        static_cast<const T*>(args.keys.k) +
        args.keys.offset(pages[token / args.keys.page_size], 0, token % args.keys.page_size);
    float dot = 0.0f;
    for (int d = 0; d < head_dim; ++d) dot = fused(q[d].value(), key[d].value(), dot);
    const float score = dot * args.scale;
    if (score > most) most = score;
  }
  most = warp_max(most);
  if (lane_index() == 0) args.scores[list * args.positions + block] = most;
}

// How many tokens of a thread are above the least chosen score, and how many equal it.
struct Reached {
  int above = 0;
  int equal = 0;
};

// The largest number that the order of at least `count` scores reaches.
__device__ inline uint32_t least_chosen(const float* scores, int seen, int count, float* partials) {
  uint32_t least = 0;
  for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    const uint32_t tried = least | bit;
    float reach[1] = {0.0f};
    for (int t = thread_index(); t < seen; t += kChooseThreads) {
      if (float_order(scores[t]) >= tried) reach[0] += 1.0f;
    }
    block_sums<kChooseThreads / kWarp>(reach, partials);
    block_sync();
    if (reach[0] >= static_cast<float>(count)) least = tried;
  }
  return least;
}

// One block for each list of a row: which tokens are chosen, or which blocks of them.
__global__ void choose_tokens_kernel(ChoiceArguments args, int first_row) {
  after_previous();
  Shared shared;
  float* partials = shared.take<float>(kChooseThreads / kWarp);
  Reached* reached = shared.take<Reached>(kChooseThreads);
  const int slot = static_cast<int>(block_index().x), row = first_row + slot / args.lists;
  const int position = args.rows.positions[row], thread = thread_index();
  const bool pooled = args.key_step > 1;
  const int seen = pooled ? (position + 1) / args.key_step : position / args.block + 1;
  const int count = pooled ? args.count - 1 : args.count;
  int32_t* chosen = args.chosen + (int64_t{row} * args.lists + slot % args.lists) * args.count;
  if (pooled && thread == 0) {
    // The row's own block comes last, unless the row ends it.
    const int own = (position + 1) % args.key_step > 0 ? seen : -1;
    chosen[count] = seen < count ? -1 : own;
    if (seen < count) chosen[seen] = own;
  }
  if (seen <= count) {
    for (int i = thread; i < count; i += kChooseThreads) {
      if (i < seen) chosen[i] = i;
      if (i >= seen + (pooled ? 1 : 0)) chosen[i] = -1;
    }
    return;
  }
  const float* scores = args.scores + int64_t{slot} * args.positions;
  const uint32_t least = least_chosen(scores, seen, count, partials);
  // Each thread takes adjacent tokens, so that the list is in order.
  const int share = (seen + kChooseThreads - 1) / kChooseThreads;
  const int begin = thread * share < seen ? thread * share : seen;
  const int end = begin + share < seen ? begin + share : seen;
  Reached own;
  for (int t = begin; t < end; ++t) {
    const uint32_t order = float_order(scores[t]);
    own.above += order > least ? 1 : 0;
    own.equal += order == least ? 1 : 0;
  }
  reached[thread] = own;
  block_sync();
  Reached before, all;
  for (int i = 0; i < kChooseThreads; ++i) {
    if (i < thread) before = {before.above + reached[i].above, before.equal + reached[i].equal};
    all.above += reached[i].above;
  }
  const int equals = count - all.above;  // so many are chosen, the first of them
  int equal = before.equal;
  int place = before.above + (equal < equals ? equal : equals);
  for (int t = begin; t < end; ++t) {
    const uint32_t order = float_order(scores[t]);
    if (order > least || (order == least && equal++ < equals)) chosen[place++] = t;
  }
}

template <typename T>
void score_tokens(Stream stream, const ChoiceArguments& arguments, int first, int64_t rows) {
  const int64_t blocks = (arguments.positions + kScoreThreads - 1) / kScoreThreads;
  launch("choose_tokens", score_tokens_kernel<T>, {static_cast<unsigned>(rows * blocks)},
         kScoreThreads, static_cast<size_t>(arguments.keys.head_dim) * kHeads * sizeof(float),
         stream, arguments, first, static_cast<int>(blocks));
}

template <typename T>
void score_blocks(Stream stream, const ChoiceArguments& arguments, int first, int64_t rows) {
  constexpr int kWarps = kScoreThreads / kWarp;
  const int64_t warps = rows * arguments.lists * arguments.positions;
  launch("choose_tokens", score_blocks_kernel<T>,
         {static_cast<unsigned>((warps + kWarps - 1) / kWarps)}, kScoreThreads, 0, stream,
         arguments, first, warps);
}

}  // namespace

void choose_tokens(Stream stream, DType activations, const ChoiceArguments& arguments) {
  for (int64_t first = 0; first < arguments.rows.n; first += arguments.scored_rows) {
    const int64_t left = arguments.rows.n - first;
    const int64_t rows = left < arguments.scored_rows ? left : arguments.scored_rows;
    const auto begin = static_cast<int>(first);
    with_compute_type(activations, [&]<typename T>(T) {
      arguments.weights != nullptr ? score_tokens<T>(stream, arguments, begin, rows)
                                   : score_blocks<T>(stream, arguments, begin, rows);
    });
    launch("choose_tokens", choose_tokens_kernel, {static_cast<unsigned>(rows * arguments.lists)},
           kChooseThreads,
           kChooseThreads / kWarp * sizeof(float) + 16 + kChooseThreads * sizeof(Reached), stream,
           arguments, begin);
  }
}

}  // namespace fp8kv::FP8KV_GPU
