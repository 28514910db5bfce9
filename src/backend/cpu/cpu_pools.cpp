#include "backend/cpu/cpu_pools.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/cpu_sequence_rows.h"
#include "backend/cpu/memory/cpu_numbers.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// Values and gates of a token, [parts * dim] each.
struct Token {
  const float* values;
  const float* gates;
};

struct Pools {
  const TokenPools& args;
  const Batch& batch;
  int64_t dim;
  int64_t width;                    // parts * dim
  std::vector<float> bias;          // [block, width]
  std::vector<SequenceRows> rows;   // of each sequence
  std::vector<size_t> sequence_of;  // each row's

  int64_t position(int64_t row) const { return batch.positions.as<int32_t>()[row]; }

  float* state(int64_t slot, int64_t at) const {
    return args.state.as<float>() + (slot * args.kept() + at % args.kept()) * 2 * width;
  }

  // The token `back` before a row, which this step or an earlier one has.
  Token token(int64_t row, int64_t back) const {
    const SequenceRows& own = rows[sequence_of[static_cast<size_t>(row)]];
    if (row - back >= own.first) {
      const int64_t at = (row - back) * width;
      return {args.rows.as<const float>() + at, args.gates.as<const float>() + at};
    }
    const float* kept = state(own.slot, position(row) - back);
    return {kept, kept + width};
  }

  // Calls visit(values, gates, bias), each [dim], for the tokens that make a pooled row, in order.
  template <typename Visit>
  void each(int64_t row, const Visit& visit) const {
    const int64_t tokens = std::min(args.kept(), position(row) + 1);
    for (int64_t back = tokens; back-- > 0;) {
      const int64_t part = args.parts == 2 && back < args.block ? 1 : 0;
      const int64_t place = args.block - 1 - back % args.block;
      const Token own = token(row, back);
      visit(own.values + part * dim, own.gates + part * dim,
            bias.data() + place * width + part * dim);
    }
  }

  void pool(int64_t row, float* out, std::vector<float>& most, std::vector<float>& sum) const {
    std::fill(most.begin(), most.end(), -std::numeric_limits<float>::infinity());
    std::fill(sum.begin(), sum.end(), 0.0f);
    const auto n = static_cast<size_t>(dim);
    each(row, [&](const float*, const float* gates, const float* added) {
      for (size_t i = 0; i < n; ++i) most[i] = std::max(most[i], gates[i] + added[i]);
    });
    each(row, [&](const float* values, const float* gates, const float* added) {
      for (size_t i = 0; i < n; ++i) {
        const float weight = std::exp(gates[i] + added[i] - most[i]);
        sum[i] += weight;
        out[i] += weight * values[i];
      }
    });
    for (size_t i = 0; i < n; ++i) out[i] /= sum[i];
  }

  // Keeps the last tokens of a sequence for its next step.
  void keep(const SequenceRows& own) const {
    if (own.slot < 0) return;
    for (int64_t row = std::max(own.first, own.end - args.kept()); row < own.end; ++row) {
      float* const to = state(own.slot, position(row));
      std::copy_n(args.rows.as<const float>() + row * width, width, to);
      std::copy_n(args.gates.as<const float>() + row * width, width, to + width);
    }
  }
};

}  // namespace

void cpu_pool_tokens(ThreadPool& pool, const TokenPools& args, const Batch& batch,
                     const TensorView& out) {
  const int64_t n = out.shape[0], dim = out.shape[1];
  FP8KV_ASSERT(args.rows.dtype == DType::f32 && args.gates.dtype == DType::f32 &&
               out.dtype == DType::f32);
  const Shape tokens{n, args.parts * dim};
  FP8KV_ASSERT(args.rows.shape == tokens && args.gates.shape == tokens);
  FP8KV_ASSERT((args.parts == 1 || args.parts == 2) && args.bias.shape[0] == args.block);
  Pools pools{args, batch, dim, args.parts * dim, numbers_of(args.bias), {}, {}};
  for (int64_t sequence = 0; sequence < sequences_of(batch); ++sequence) {
    pools.rows.push_back(rows_of(batch, sequence));
    const auto count = static_cast<size_t>(pools.rows.back().end - pools.rows.back().first);
    pools.sequence_of.insert(pools.sequence_of.end(), count, static_cast<size_t>(sequence));
  }
  constexpr int64_t kJobRows = 16;
  pool.run((n + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    std::vector<float> most(static_cast<size_t>(dim)), sum(most);
    for (int64_t row = job * kJobRows; row < std::min(n, (job + 1) * kJobRows); ++row) {
      float* const to = out.as<float>() + row * dim;
      std::fill_n(to, dim, 0.0f);
      if ((pools.position(row) + 1) % args.block == 0) pools.pool(row, to, most, sum);
    }
  });
  for (const SequenceRows& own : pools.rows) pools.keep(own);
}

}  // namespace fp8kv
