#include "backend/cpu/attention/cpu_choose_tokens.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/cpu/attention/cpu_attention_op.h"
#include "core/numbers/float_order.h"

namespace fp8kv {
namespace attention {
namespace {

// scores[t] = sum over heads of weight * max(0, scale * q . k_t), for the span's one row.
void score_row(const Op& op, const Span& span, const TokenScores& args, const Work& work,
               float* scores) {
  const float* weights = args.weights.as<float>() + span.first_row * op.n_heads;
  const int64_t end = op.end_token(span);
  kernels_of(op).load_queries(op, span, work);
  for (int64_t begin = 0; begin < end; begin += kBlockTokens) {
    const int64_t block_end = std::min(begin + kBlockTokens, end);
    const BlockRows rows(op, span, begin, block_end, work);
    kernels_of(op).score(op, span, rows, BlockRows(), work);
    float* const sums = scores + begin;
    std::fill_n(sums, block_end - begin, 0.0f);
    for (int64_t head = 0; head < op.n_heads; ++head) {
      const float* of_head = work.scores + head * kTileStride;
      const float weight = weights[head];
      for (int64_t t = 0; t < block_end - begin; ++t) {
        const float score = of_head[t] * args.scale;
        // A NaN stays one.
        sums[t] += weight * (score < 0.0f ? 0.0f : score);
      }
    }
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

}  // namespace
}  // namespace attention

void cpu_choose_tokens(const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch,
                       const TokenScores& args, const Batch& batch, const TensorView& chosen) {
  using namespace attention;
  FP8KV_ASSERT(args.keys.in_elements() && args.keys.n_kv_heads == 1);
  const AttentionOptions options;
  const DType element = *kv_elements(args.keys.k_format);
  const Op op{kernels,
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
              static_cast<int64_t>(dtype_bytes(element))};
  scratch.threads.resize(static_cast<size_t>(pool.threads()));
  const int64_t n = args.q.shape[0], at_once = args.scores.shape[0], width = args.scores.shape[1];
  const int64_t count = chosen.shape[1];
  const auto* indptr = batch.indptr.as<int32_t>();
  std::vector<int64_t> sequences;
  for (int64_t s = 0; s + 1 < batch.indptr.shape[0]; ++s) {
    sequences.insert(sequences.end(), static_cast<size_t>(indptr[s + 1] - indptr[s]), s);
  }
  for (int64_t first = 0; first < n; first += at_once) {
    pool.run(std::min(at_once, n - first), [&](int64_t i, int thread) {
      const Span span{sequences[static_cast<size_t>(first + i)], 0, first + i, 1};
      float* scores = args.scores.as<float>() + i * width;
      const int64_t seen = op.seen(span.first_row);
      FP8KV_ASSERT(seen <= width);
      const Work work(op, op.queries(span), scratch.threads[static_cast<size_t>(thread)]);
      if (seen > count) score_row(op, span, args, work, scores);
      choose_row(scores, seen, count, chosen.as<int32_t>() + span.first_row * count);
    });
  }
}

}  // namespace fp8kv
