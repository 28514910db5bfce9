#include "backend/cpu/attention/cpu_attention_pools.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/memory/cpu_kv_rows.h"
#include "backend/cpu/memory/cpu_numbers.h"
#include "base/error.h"

namespace fp8kv {
namespace {

// In lanes whose number is fixed, so that the sum has the same bits everywhere.
float dot(const float* a, const float* b, int64_t count) {
  constexpr int kLanes = 8;
  std::array<float, kLanes> lanes{};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      const auto at = i + static_cast<int64_t>(j);
      lanes[j] += a[at] * b[at];
    }
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (int64_t i = whole; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// A softmax over scores that come one by one, and the sum of values that it weighs.
struct Sums {
  float most = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;

  void add(float score, const float* value, int64_t dim, float* weighed) {
    if (score > most) {
      const float factor = std::exp(most - score);
      sum *= factor;
      for (int64_t i = 0; i < dim; ++i) weighed[i] *= factor;
      most = score;
    }
    // A NaN stays one.
    const float weight = std::exp(score - most);
    sum += weight;
    for (int64_t i = 0; i < dim; ++i) weighed[i] += weight * value[i];
  }
};

struct PoolAttention {
  const CpuKernels& kernels;
  const AttentionRows& rows;
  const PagedKv& kv;
  const AttentionOptions& options;
  int64_t n_heads;
  int64_t dim;
  std::vector<int64_t> sequence_of;

  // Reads the row of K or V of a position.
  void read(const int32_t* pages, int64_t position, bool is_key, float* to) const {
    const KvRow row = is_key ? kv.k_row() : kv.v_row();
    const float* const scale = is_key ? kv.k_scale : kv.v_scale;
    const int64_t number =
        kv.row(pages[position / kv.page_size], 0, position % kv.page_size) * row.bytes();
    read_kv_row(kernels, row, static_cast<const std::byte*>(is_key ? kv.k : kv.v) + number, to);
    for (int64_t i = 0; scale != nullptr && i < dim; ++i) to[i] *= *scale;
  }

  // Calls visit(position, is_key) for all that row `row` sees.
  template <typename Visit>
  void each(int64_t row, const Visit& visit) const {
    const int64_t position = rows.batch.positions.as<int32_t>()[row];
    const int64_t first =
        options.window > 0 ? std::max<int64_t>(0, position + 1 - options.window) : 0;
    const int64_t ended = (position + 1) / options.pool;
    const auto visit_block = [&](int64_t block) {
      if (block >= 0 && block < ended) visit((block + 1) * options.pool - 1, false);
    };
    if (options.chosen) {
      const int64_t count = options.chosen->shape[1];
      const int32_t* const chosen = options.chosen->as<int32_t>() + row * count;
      for (int64_t i = 0; i < count; ++i) visit_block(chosen[i]);
    } else {
      for (int64_t block = 0; block < ended; ++block) visit_block(block);
    }
    for (int64_t token = first; token <= position; ++token) visit(token, true);
  }

  void run(int64_t row, float* memory) const {
    const int32_t* const pages =
        rows.batch.page_table.as<int32_t>() +
        sequence_of[static_cast<size_t>(row)] * rows.batch.page_table.shape[1];
    const float* const q = rows.q.as<const float>() + row * n_heads * dim;
    float* const out = rows.out.as<float>() + row * n_heads * dim;
    std::fill_n(out, n_heads * dim, 0.0f);
    std::vector<Sums> sums(static_cast<size_t>(n_heads));
    for (int64_t head = 0; options.sinks && head < n_heads; ++head) {
      sums[static_cast<size_t>(head)] = {number_at(*options.sinks, head), 1.0f};
    }
    each(row, [&](int64_t position, bool is_key) {
      read(pages, position, is_key, memory);
      for (int64_t head = 0; head < n_heads; ++head) {
        const float score = dot(q + head * dim, memory, dim) * options.scale;
        sums[static_cast<size_t>(head)].add(score, memory, dim, out + head * dim);
      }
    });
    for (int64_t head = 0; head < n_heads; ++head) {
      const float sum = sums[static_cast<size_t>(head)].sum;
      for (int64_t i = 0; i < dim; ++i) out[head * dim + i] /= sum;
    }
  }
};

}  // namespace

void cpu_attention_pools(const CpuContext& cpu, const AttentionRows& rows, const PagedKv& kv,
                         const AttentionOptions& options) {
  FP8KV_ASSERT(kv.n_kv_heads == 1 && kv.head_dim == kv.v_dim());
  FP8KV_ASSERT(kv_spec(kv.k_format).in_elements() && kv_spec(kv.v_format).in_elements());
  FP8KV_ASSERT(options.chunk == 0 && options.cap == 0.0f && !options.bias && !options.distances);
  PoolAttention attention{cpu.kernels, rows, kv, options, rows.q.shape[1], rows.q.shape[2], {}};
  const auto* const indptr = rows.batch.indptr.as<int32_t>();
  for (int64_t s = 0; s + 1 < rows.batch.indptr.shape[0]; ++s) {
    attention.sequence_of.insert(attention.sequence_of.end(),
                                 static_cast<size_t>(indptr[s + 1] - indptr[s]), s);
  }
  cpu.pool.run(rows.q.shape[0], [&](int64_t row, int /*thread*/) {
    std::vector<float> memory(static_cast<size_t>(attention.dim));
    attention.run(row, memory.data());
  });
}

}  // namespace fp8kv
