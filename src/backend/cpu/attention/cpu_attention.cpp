#include "backend/cpu/attention/cpu_attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cpu/attention/cpu_attention_op.h"
#include "core/numbers/hadamard.h"

namespace fp8kv {
namespace attention {
namespace {

// Queries (rows times heads of a group) of one job: eight tiles of fourteen, or of sixteen.
constexpr int64_t kMaxQueries = 112, kMaxQueriesOfUnit = 128;
constexpr int64_t kJobsPerThread = 4;

// Rounds weights of at most 1 like FlashAttention 3: 256 times the weight to E4M3. The divisor
// stays the sum of the unrounded weights. Source: its hopper/softmax.h, Max_offset.
void round_weights(const Op& op, float* weights, int count) {
  constexpr float kScale = 1.0f / 256;
  alignas(64) std::array<std::byte, kTileStride> codes;
  op.kernels.store[DType::f8_e4m3](weights, count, kScale, codes.data());
  op.kernels.to_float[DType::f8_e4m3](codes.data(), count, weights);
  for (int t = 0; t < count; ++t) weights[t] *= kScale;
}

// Turns scores into weights, and scales the sums so far to the new maximum.
void weigh_block(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work) {
  float scale = op.options.scale;
  if (op.kv.k_scale != nullptr) scale *= op.kv.k_scale[span.kv_head];
  const auto count = static_cast<int>(end - begin);
  for (int64_t i = 0; i < op.queries(span); ++i) {
    float* scores = work.scores + i * kTileStride;
    const int64_t row = op.row_of(span, i);
    const int64_t seen_begin = std::max(begin, op.first_token(row)) - begin;
    const int64_t seen_end = std::min(end, op.seen(row)) - begin;
    if (seen_begin >= seen_end) {
      std::fill_n(scores, count, 0.0f);
      continue;
    }
    float left = scale;  // the factor that scores still need
    if (op.options.cap != 0.0f) {
      op.kernels.cap(scores, count, std::exchange(left, 1.0f), op.options.cap);
    }
    if (op.options.bias) {
      const float* bias = op.bias_of(span, i) + begin;
      const float by = std::exchange(left, 1.0f);
      for (int64_t t = seen_begin; t < seen_end; ++t) scores[t] = scores[t] * by + bias[t];
    }
    if (op.options.distances) {
      const float by = std::exchange(left, 1.0f);
      for (int64_t t = seen_begin; t < seen_end; ++t) scores[t] *= by;
      op.add_distances(span, i, begin + seen_begin, begin + seen_end, scores + seen_begin);
    }
    const float correction =
        op.kernels.softmax(scores, static_cast<int>(seen_begin), static_cast<int>(seen_end), count,
                           left, work.chunk.states[i]);
    if (op.kv.q_scale > 0) round_weights(op, scores, count);
    if (correction == 1.0f) continue;
    float* sums = work.chunk.sums + i * op.padded_dim;
    for (int64_t d = 0; d < op.padded_dim; ++d) sums[d] *= correction;
  }
}

void attend_chunk(const Op& op, const Span& span, int64_t chunk, const Work& work) {
  work.chunk.clear(op, op.queries(span));
  const int64_t chunk_end = std::min((chunk + 1) * kChunkTokens, op.end_token(span));
  const auto rows_from = [&](int64_t begin) {
    const int64_t end = std::min(begin + kBlockTokens, op.end_token(span));
    return begin < end && !op.as_floats ? BlockRows(op, span, begin, end, work) : BlockRows();
  };
  BlockRows next = rows_from(chunk * kChunkTokens);
  for (int64_t begin = chunk * kChunkTokens; begin < chunk_end; begin += kBlockTokens) {
    const int64_t end = std::min(begin + kBlockTokens, chunk_end);
    const BlockRows rows = op.as_floats ? BlockRows(op, span, begin, end, work) : next;
    next = rows_from(end);
    if (end <= op.first_token(span.first_row)) continue;
    kernels_of(op).score(op, span, rows, next, work);
    weigh_block(op, span, begin, end, work);
    kernels_of(op).sum(op, span, rows, next, work);
  }
}

void merge_into(const Op& op, int64_t queries, const Partial& total, const Partial& part) {
  for (int64_t i = 0; i < queries; ++i) {
    const SoftmaxMerge merged = merge(total.states[i], part.states[i]);
    total.states[i] = merged.state;
    float* to = total.sums + i * op.padded_dim;
    const float* from = part.sums + i * op.padded_dim;
    for (int64_t d = 0; d < op.v_dim; ++d) {
      to[d] = to[d] * merged.factor_a + from[d] * merged.factor_b;
    }
  }
}

void write_out(const Op& op, const Span& span, const Partial& total) {
  const float v_scale = op.kv.v_scale == nullptr ? 1.0f : op.kv.v_scale[span.kv_head];
  for (int64_t i = 0; i < op.queries(span); ++i) {
    // Without a sink the factor is 1.
    const SoftmaxMerge all = merge(total.states[i], op.sink_of(span, i));
    const float factor = v_scale * all.factor_a / all.state.sum;
    const float* from = total.sums + i * op.padded_dim;
    float* to = op.out + op.item(span, i) * op.v_dim;
    for (int64_t d = 0; d < op.v_dim; ++d) to[d] = from[d] * factor;
  }
}

std::vector<Span> make_spans(const Op& op) {
  const int64_t most = op.by_unit ? kMaxQueriesOfUnit : kMaxQueries;
  // Each row has its own chosen tokens.
  const int64_t rows_at_once = op.options.chosen ? 1 : std::max<int64_t>(1, most / op.group);
  const int32_t* indptr = op.batch.indptr.as<int32_t>();
  std::vector<Span> spans;
  for (int64_t s = 0; s + 1 < op.batch.indptr.shape[0]; ++s) {
    const int64_t n_rows = indptr[s + 1] - indptr[s];
    const int64_t parts = divide_up(n_rows, rows_at_once);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = n_rows * part / parts;
      const int64_t end = n_rows * (part + 1) / parts;
      for (int64_t head = 0; head < op.kv.n_kv_heads; ++head) {
        spans.push_back({s, head, indptr[s] + begin, end - begin});
      }
    }
  }
  // The longest spans come first, so that no thread is left with one at the end.
  std::stable_sort(spans.begin(), spans.end(), [&](const Span& a, const Span& b) {
    return op.end_token(a) * a.n_rows > op.end_token(b) * b.n_rows;
  });
  return spans;
}

// One job per span.
void attend_whole(const Op& op, ThreadPool& pool, AttentionScratch& scratch,
                  const std::vector<Span>& spans) {
  pool.run(static_cast<int64_t>(spans.size()), [&](int64_t job, int thread) {
    const Span& span = spans[job];
    const int64_t n = op.queries(span);
    const Work work(op, n, scratch.threads[thread]);
    kernels_of(op).load_queries(op, span, work);
    work.total.clear(op, n);
    for (int64_t chunk = op.first_chunk(span); chunk < op.end_chunk(span); ++chunk) {
      attend_chunk(op, span, chunk, work);
      merge_into(op, n, work.total, work.chunk);
    }
    write_out(op, span, work.total);
  });
}

// One job per span and chunk, for when there are too few spans for all threads. Then merges the
// chunks in the order of attend_whole.
void attend_split(const Op& op, ThreadPool& pool, AttentionScratch& scratch,
                  const std::vector<Span>& spans) {
  struct Piece {
    int64_t span;
    int64_t chunk;
    int64_t offset;  // of its Partial, in the memory of partials
  };
  std::vector<Piece> pieces;
  std::vector<int64_t> first_piece;
  int64_t floats = 0;
  for (int64_t s = 0; s < static_cast<int64_t>(spans.size()); ++s) {
    first_piece.push_back(static_cast<int64_t>(pieces.size()));
    for (int64_t chunk = op.first_chunk(spans[s]); chunk < op.end_chunk(spans[s]); ++chunk) {
      pieces.push_back({s, chunk, floats});
      floats += Partial::floats(op, op.queries(spans[s]));
    }
  }
  first_piece.push_back(static_cast<int64_t>(pieces.size()));
  float* partials = scratch.partials.floats(floats);

  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t job, int thread) {
    const Piece& piece = pieces[job];
    const Span& span = spans[piece.span];
    const int64_t n = op.queries(span);
    Work work(op, n, scratch.threads[thread]);
    work.chunk = Partial::at(op, partials + piece.offset, n);
    kernels_of(op).load_queries(op, span, work);
    attend_chunk(op, span, piece.chunk, work);
  });
  pool.run(static_cast<int64_t>(spans.size()), [&](int64_t job, int thread) {
    const Span& span = spans[job];
    const int64_t n = op.queries(span);
    const Work work(op, n, scratch.threads[thread]);
    work.total.clear(op, n);
    for (int64_t p = first_piece[job]; p < first_piece[job + 1]; ++p) {
      merge_into(op, n, work.total, Partial::at(op, partials + pieces[p].offset, n));
    }
    write_out(op, span, work.total);
  });
}

// Rotates each head of Q like K, and rounds it to the same dtype. The transform's factor is left to
// the scale of scores.
const float* rotated_queries(const CpuContext& cpu, const ConstTensorView& q, DType rounded_to,
                             AttentionScratch& scratch) {
  const int64_t dim = q.shape[2], items = q.shape[0] * q.shape[1];
  float* to = scratch.rotated.floats(static_cast<size_t>(items * dim));
  cpu.pool.run(items, [&](int64_t item, int /*thread*/) {
    float* x = to + item * dim;
    std::copy_n(q.as<float>() + item * dim, dim, x);
    hadamard(x, static_cast<int32_t>(dim), false);
    const float factor = 1.0f / static_cast<float>(hadamard_block(static_cast<int32_t>(dim)));
    if (rounded_to == DType::f16) cpu.kernels.round_f16(x, dim);
    if (rounded_to == DType::bf16) cpu.kernels.round_bf16(x, dim);
    for (int64_t i = 0; i < dim; ++i) x[i] *= factor;
  });
  return to;
}

// Q rounded to E4M3 by the cache's scale of Q.
const float* rounded_queries(const CpuContext& cpu, const ConstTensorView& q, float scale,
                             AttentionScratch& scratch) {
  const int64_t dim = q.shape[2], items = q.shape[0] * q.shape[1];
  float* to = scratch.rotated.floats(static_cast<size_t>(items * dim));
  cpu.pool.run(items, [&](int64_t item, int /*thread*/) {
    std::vector<std::byte> codes(static_cast<size_t>(dim));
    float* x = to + item * dim;
    cpu.kernels.store[DType::f8_e4m3](q.as<float>() + item * dim, dim, scale, codes.data());
    cpu.kernels.to_float[DType::f8_e4m3](codes.data(), dim, x);
    for (int64_t i = 0; i < dim; ++i) x[i] *= scale;
  });
  return to;
}

// The bank of a bias of distances: see Op::bank.
const float* turned_bank(const CpuContext& cpu, const DistanceBias& bias,
                         AttentionScratch& scratch) {
  const int64_t extent = bias.extent(), count = bias.dim() * extent;
  float* to = scratch.bank.floats(static_cast<size_t>(count));
  cpu.kernels.to_float[bias.bank.dtype](bias.bank.data, count, to);
  for (int64_t at = 0; at < count; at += extent) std::reverse(to + at, to + at + extent);
  return to;
}

// Turns sums of rotated V back into sums of V.
void rotate_back(ThreadPool& pool, const TensorView& out) {
  const int64_t dim = out.shape[2];
  const auto block = static_cast<float>(hadamard_block(static_cast<int32_t>(dim)));
  pool.run(out.shape[0] * out.shape[1], [&](int64_t item, int /*thread*/) {
    float* x = out.as<float>() + item * dim;
    hadamard(x, static_cast<int32_t>(dim), true);
    for (int64_t i = 0; i < dim; ++i) x[i] /= block;
  });
}

}  // namespace
}  // namespace attention

void cpu_attention(const CpuContext& cpu, AttentionScratch& scratch, const AttentionRows& rows,
                   const PagedKv& kv, const AttentionOptions& options) {
  using namespace attention;
  const auto& [q, batch, out] = rows;
  const int64_t n_heads = q.shape[1];
  const int64_t head_dim = q.shape[2];
  const bool as_floats = !kv.in_elements();
  const DType element = as_floats ? DType::f32 : *kv_elements(kv.k_format);
  const bool by_unit = cpu.kernels.matrix_unit != nullptr && options.rounded_to != DType::f32 &&
                       !as_floats && kv.q_scale == 0;
  const int64_t width = by_unit ? kUnitWeights : cpu.kernels.strip;
  const float* queries = q.as<float>();
  FP8KV_ASSERT(kv.q_scale == 0 || !kv.rotated());
  if (kv.q_scale > 0) queries = rounded_queries(cpu, q, kv.q_scale, scratch);
  if (kv.rotated()) queries = rotated_queries(cpu, q, options.rounded_to, scratch);
  const Op op{cpu.kernels,
              queries,
              out.as<float>(),
              kv,
              batch,
              options,
              n_heads,
              n_heads / kv.n_kv_heads,
              head_dim,
              kv.v_dim(),
              divide_up(kv.v_dim(), width) * width,
              by_unit,
              as_floats,
              element,
              static_cast<int64_t>(dtype_bytes(element)),
              1,
              options.distances ? turned_bank(cpu, *options.distances, scratch) : nullptr};
  scratch.threads.resize(static_cast<size_t>(cpu.pool.threads()));
  const std::vector<Span> spans = make_spans(op);
  bool long_context = false;
  for (const Span& span : spans) {
    long_context = long_context || op.end_chunk(span) - op.first_chunk(span) > 1;
  }
  const bool few_spans = static_cast<int64_t>(spans.size()) < cpu.pool.threads() * kJobsPerThread;
  if (few_spans && long_context && cpu.pool.threads() > 1) {
    attend_split(op, cpu.pool, scratch, spans);
  } else {
    attend_whole(op, cpu.pool, scratch, spans);
  }
  if (kv.rotated()) rotate_back(cpu.pool, out);
}

}  // namespace fp8kv
