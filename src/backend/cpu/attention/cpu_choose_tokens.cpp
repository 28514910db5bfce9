#include "backend/cpu/attention/cpu_choose_tokens.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "backend/cpu/attention/cpu_attention_op.h"
#include "core/numbers/float_order.h"

namespace fp8kv {
namespace attention {
namespace {

// Adds a block's scores to those of the tokens: sum over heads of weight * max(0, scale * q . k).
void add_scores(const Op& op, const Span& span, const TokenScores& args, const float* of_heads,
                std::span<float> sums) {
  const float* weights = args.weights->as<float>() + span.first_row * op.n_heads;
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (int64_t head = 0; head < op.n_heads; ++head, of_heads += kTileStride) {
    for (size_t t = 0; t < sums.size(); ++t) {
      const float score = of_heads[t] * args.scale;
      // A NaN stays one.
      sums[t] += weights[head] * (score < 0.0f ? 0.0f : score);
    }
  }
}

// Raises the scores of blocks to those of tokens [begin, end).   scores [n_heads, width]
void raise_scores(const Op& op, const TokenScores& args, const float* of_heads, int64_t begin,
                  int64_t end, float* scores, int64_t width) {
  for (int64_t head = 0; head < op.n_heads; ++head, of_heads += kTileStride) {
    float* const own = scores + head * width;
    for (int64_t t = begin; t < end; ++t) {
      const float score = of_heads[t - begin] * args.scale;
      float& most = own[t / args.block];
      if (score > most) most = score;
    }
  }
}

// Scores of the tokens before the span's one row, or of the blocks that hold them for each head.
void score_row(const Op& op, const Span& span, const TokenScores& args, const Work& work,
               std::span<float> scores) {
  const int64_t end = op.end_token(span);
  const int64_t width = static_cast<int64_t>(scores.size()) / op.n_heads;
  if (!args.weights) std::fill(scores.begin(), scores.end(), -__builtin_inff());
  kernels_of(op).load_queries(op, span, work);
  for (int64_t begin = 0; begin < end; begin += kBlockTokens) {
    const int64_t block_end = std::min(begin + kBlockTokens, end);
    const BlockRows rows(op, span, begin, block_end, work);
    kernels_of(op).score(op, span, rows, BlockRows(), work);
    if (args.weights) {
      add_scores(
          op, span, args, work.scores,
          scores.subspan(static_cast<size_t>(begin), static_cast<size_t>(block_end - begin)));
    } else {
      raise_scores(op, args, work.scores, begin, block_end, scores.data(), width);
    }
  }
  if (args.weights) return;
  const int64_t blocks = (end - 1) / args.block + 1;
  for (int64_t head = 0; head < op.n_heads; ++head) {
    const int64_t local = std::min(blocks, args.local_blocks);
    std::fill_n(scores.data() + head * width + blocks - local, local, __builtin_inff());
  }
}

// Writes the places of the `count` largest of n scores, rising.
void choose_row(const float* scores, int64_t n, int64_t count, int32_t* chosen) {
  std::fill_n(chosen, count, -1);
  if (n <= count) return std::iota(chosen, chosen + n, 0);
  // The smallest numbers are the best scores, and among equals the earliest places.
  std::vector<uint64_t> order(static_cast<size_t>(n));
  for (int64_t t = 0; t < n; ++t) {
    order[static_cast<size_t>(t)] =
        uint64_t{~float_order(scores[t])} << 32 | static_cast<uint64_t>(t);
  }
  std::nth_element(order.begin(), order.begin() + count, order.end());
  for (int64_t i = 0; i < count; ++i) {
    chosen[i] = static_cast<int32_t>(order[static_cast<size_t>(i)] & 0xFFFFFFFFu);
  }
  std::sort(chosen, chosen + count);
}

// Adds the row's own block to the `most` blocks that may stand before it, unless the row ends it.
void add_own_block(int64_t position, int64_t block, int64_t most, int32_t* chosen) {
  const int64_t before = (position + 1) / block;
  chosen[most] = -1;
  if ((position + 1) % block > 0) chosen[std::min(before, most)] = static_cast<int32_t>(before);
}

}  // namespace
}  // namespace attention

void cpu_choose_tokens(const CpuContext& cpu, AttentionScratch& scratch, const TokenScores& args,
                       const Batch& batch, const TensorView& chosen) {
  using namespace attention;
  FP8KV_ASSERT(args.keys.in_elements() && args.keys.n_kv_heads == 1);
  const AttentionOptions options;
  const DType element = *kv_elements(args.keys.k_format);
  const Op op{cpu.kernels,
              args.q.as<float>(),
              nullptr,
              args.keys,
              batch,
              options,
              args.q.shape[1],
              args.q.shape[1],
              args.q.shape[2],
              0,
              0,
              false,
              false,
              element,
              static_cast<int64_t>(dtype_bytes(element)),
              args.pooled ? args.block : 1};
  scratch.threads.resize(static_cast<size_t>(cpu.pool.threads()));
  const int64_t n = args.q.shape[0], at_once = args.scores.shape[0], width = args.scores.shape[1];
  const int64_t count = chosen.shape[chosen.shape.rank() - 1];
  const int64_t lists = args.weights ? 1 : op.n_heads;     // of a row
  const int64_t scored = args.pooled ? count - 1 : count;  // chosen by their scores
  FP8KV_ASSERT(args.weights ? args.pooled || args.block == 1 : !args.pooled);
  const auto* indptr = batch.indptr.as<int32_t>();
  std::vector<int64_t> sequences;
  for (int64_t s = 0; s + 1 < batch.indptr.shape[0]; ++s) {
    sequences.insert(sequences.end(), static_cast<size_t>(indptr[s + 1] - indptr[s]), s);
  }
  for (int64_t first = 0; first < n; first += at_once) {
    cpu.pool.run(std::min(at_once, n - first), [&](int64_t i, int thread) {
      const Span span{sequences[static_cast<size_t>(first + i)], 0, first + i, 1};
      const std::span scores(args.scores.as<float>() + i * width, static_cast<size_t>(width));
      const int64_t seen = op.seen(span.first_row);
      const int64_t blocks = args.pooled ? seen : divide_up(seen, args.block);
      FP8KV_ASSERT(blocks * lists <= width);
      const Work work(op, op.queries(span), scratch.threads[static_cast<size_t>(thread)]);
      if (blocks > scored) score_row(op, span, args, work, scores);
      for (int64_t list = 0; list < lists; ++list) {
        int32_t* const to = chosen.as<int32_t>() + (span.first_row * lists + list) * count;
        choose_row(scores.data() + list * (width / lists), blocks, scored, to);
        if (args.pooled) add_own_block(op.position(span.first_row), args.block, scored, to);
      }
    });
  }
}

}  // namespace fp8kv
