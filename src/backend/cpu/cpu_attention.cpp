#include "backend/cpu/cpu_attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/softmax_state.h"

namespace fp8kv {
namespace {

// Tokens whose scores are in hand at once. Blocks begin at multiples of this.
constexpr int64_t kBlockTokens = kTileStride;
// Tokens whose softmax is one online pass; longer contexts are merged from chunks, in order. A
// constant, so that a row is computed in the same way whatever is beside it.
constexpr int64_t kChunkTokens = 2 * kBlockTokens;
// Queries (rows times heads of a group) of one job: eight tiles of fourteen.
constexpr int64_t kMaxQueries = 112;
constexpr int64_t kJobsPerThread = 4;

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Rows of one sequence as one KV head sees them: with `group` query heads each.
struct Span {
  int64_t sequence;
  int64_t kv_head;
  int64_t first_row;
  int64_t n_rows;
};

struct Op {
  const CpuKernels& kernels;
  const float* q;
  float* out;
  const PagedKv& kv;
  const Batch& batch;
  const AttentionOptions& options;
  int64_t n_heads;
  int64_t group;
  int64_t head_dim;    // of Q and K
  int64_t v_dim;       // of V and the output
  int64_t padded_dim;  // v_dim in whole strips
  DType element;       // of what is read as K and V: the cache's, but f32 of latents in blocks
  int64_t element_bytes;

  int64_t row_bytes() const { return head_dim * element_bytes; }
  int64_t k_blocks() const { return divide_up(head_dim, kTileStride); }
  int64_t position(int64_t row) const { return batch.positions.as<int32_t>()[row]; }
  int64_t queries(const Span& span) const { return span.n_rows * group; }
  const int32_t* pages(const Span& span) const {
    return batch.page_table.as<int32_t>() + span.sequence * batch.page_table.shape[1];
  }
  int64_t row_of(const Span& span, int64_t query) const { return span.first_row + query / group; }
  // Which of all rows' query heads one is: its elements in q and out come in that order.
  int64_t item(const Span& span, int64_t query) const {
    const int64_t head = span.kv_head * group + query % group;
    return row_of(span, query) * n_heads + head;
  }
  // Of the options, for the query's head.   [positions]
  const float* bias_of(const Span& span, int64_t query) const {
    const int64_t head = span.kv_head * group + query % group;
    return options.bias->as<float>() + head * options.bias->shape[1];
  }
  // Its sink: a state of the softmax without values.
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
  int64_t end_token(const Span& span) const {
    return position(span.first_row + span.n_rows - 1) + 1;
  }
  int64_t first_chunk(const Span& span) const { return first_token(span.first_row) / kChunkTokens; }
  int64_t end_chunk(const Span& span) const { return divide_up(end_token(span), kChunkTokens); }
};

// A softmax-weighted sum of values for each query, not yet divided by the weights' sum.
struct Partial {
  SoftmaxState* states;  // [queries]
  float* sums;           // [queries, padded_dim]

  static int64_t floats(const Op& op, int64_t queries) { return queries * (op.padded_dim + 2); }
  static Partial at(float* memory, int64_t queries) {
    return {reinterpret_cast<SoftmaxState*>(memory), memory + 2 * queries};
  }
  void clear(const Op& op, int64_t queries) const {
    std::fill_n(states, queries, SoftmaxState{-__builtin_inff(), 0.0f});
    std::fill_n(sums, queries * op.padded_dim, 0.0f);
  }
};

// A thread's working memory.
struct Work {
  float* panel;    // [kTileStride, strip]
  float* tokens;   // [kBlockTokens, head_dim] of latents in blocks; none of other caches
  float* queries;  // [k_blocks, queries, kTileStride]
  float* scores;   // [queries, kTileStride]
  Partial chunk;
  Partial total;

  Work(const Op& op, int64_t n, Scratch& scratch) {
    const int64_t panel_size = kTileStride * op.kernels.strip;
    const int64_t queries_size = op.k_blocks() * n * kTileStride;
    const int64_t scores_size = n * kTileStride;
    const int64_t partial_size = Partial::floats(op, n);
    const int64_t tokens_size = op.kv.latent_blocks ? kBlockTokens * op.head_dim : 0;
    panel =
        scratch.floats(panel_size + tokens_size + queries_size + scores_size + 2 * partial_size);
    tokens = panel + panel_size;
    queries = tokens + tokens_size;
    scores = queries + queries_size;
    chunk = Partial::at(scores + scores_size, n);
    total = Partial::at(scores + scores_size + partial_size, n);
  }
};

void load_queries(const Op& op, const Span& span, const Work& work) {
  const int64_t n = op.queries(span);
  for (int64_t i = 0; i < n; ++i) {
    const float* from = op.q + op.item(span, i) * op.head_dim;
    for (int64_t b = 0; b < op.k_blocks(); ++b) {
      const int64_t begin = b * kTileStride;
      const int64_t count = std::min<int64_t>(kTileStride, op.head_dim - begin);
      std::memcpy(work.queries + (b * n + i) * kTileStride, from + begin,
                  static_cast<size_t>(count) * sizeof(float));
    }
  }
}

// Stands in for tokens past the last one.
alignas(64) constexpr std::array<std::byte, kTileStride * sizeof(float)> kZeroRow{};

// Where K or V of the tokens [begin, end) of the span's head lie. A page holds a head's tokens one
// after the other.
void find_tokens(const Op& op, const Span& span, const void* pool, int64_t begin, int64_t end,
                 const std::byte** rows) {
  const int32_t* pages = op.pages(span);
  int64_t page = begin / op.kv.page_size;
  int64_t in_page = begin % op.kv.page_size;
  for (int64_t t = begin; t < end; ++page, in_page = 0) {
    const std::byte* from = static_cast<const std::byte*>(pool) +
                            op.kv.offset(pages[page], span.kv_head, in_page) * op.element_bytes;
    for (; in_page < op.kv.page_size && t < end; ++in_page, ++t, from += op.row_bytes()) {
      rows[t - begin] = from;
    }
  }
}

// The processor's own prefetching stops at the end of a page of the cache, which is short.
void prefetch(const Op& op, const std::byte* const* rows, int64_t count) {
  const int64_t row_bytes = op.row_bytes();
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(rows[r] + i);
  }
}

// c [n, c_stride] = or += a [n, kTileStride] * panel, in tiles of nearly equal height.
void multiply(const Op& op, const float* a, int64_t n, const float* panel, int64_t depth, float* c,
              int64_t c_stride, bool add) {
  const int64_t n_tiles = divide_up(n, op.kernels.tile_rows);
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t begin = n * t / n_tiles;
    const int64_t rows = n * (t + 1) / n_tiles - begin;
    op.kernels.tiles[rows - 1](a + begin * kTileStride, panel, static_cast<int>(depth),
                               c + begin * c_stride, c_stride, add);
  }
}

// A token of latents in blocks, as the elements of K.
void read_blocks(const Op& op, const std::byte* token, float* to) {
  const LatentBlocks blocks = op.kv.blocks();
  op.kernels.to_float[DType::bf16](token + blocks.rope_at(), blocks.rope_dim, to);
  to += blocks.rope_dim;
  op.kernels.to_float[op.kv.dtype](token, blocks.rank, to);
  for (int32_t block = 0; block < blocks.blocks(); ++block, to += kLatentBlock) {
    float scale = 0.0f;
    std::memcpy(&scale, token + blocks.scales_at() + block * 4, sizeof scale);
    for (int32_t i = 0; i < kLatentBlock; ++i) to[i] *= scale;
  }
}

// Where the keys and values of a block lie.
struct BlockRows {
  const std::byte* keys[kBlockTokens + kMaxStrip];
  const std::byte* values[kBlockTokens];

  BlockRows(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work) {
    op.kv.latent_blocks ? read_tokens(op, span, begin, end, work) : find(op, span, begin, end);
    std::fill_n(keys + (end - begin), kMaxStrip, kZeroRow.data());
  }

 private:
  void find(const Op& op, const Span& span, int64_t begin, int64_t end) {
    find_tokens(op, span, op.kv.k, begin, end, keys);
    find_tokens(op, span, op.kv.v, begin, end, values);
  }

  void read_tokens(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work) {
    for (int64_t t = begin; t < end; ++t) {
      float* to = work.tokens + (t - begin) * op.head_dim;
      const int64_t page = op.pages(span)[t / op.kv.page_size];
      read_blocks(
          op,
          static_cast<const std::byte*>(op.kv.k) + op.kv.block_offset(page, t % op.kv.page_size),
          to);
      keys[t - begin] = reinterpret_cast<const std::byte*>(to);
      values[t - begin] = reinterpret_cast<const std::byte*>(to + op.head_dim - op.v_dim);
    }
  }
};

// scores[i][t] = q_i . k_t, with values and the keys of the next strip on their way meanwhile.
void score_block(const Op& op, const Span& span, const BlockRows& rows, int64_t count,
                 const Work& work) {
  const int64_t n = op.queries(span);
  const int64_t width = op.kernels.strip;
  prefetch(op, rows.keys, std::min(width, count));
  for (int64_t first = 0; first < count; first += width) {
    prefetch(op, rows.keys + first + width, std::clamp<int64_t>(count - first - width, 0, width));
    prefetch(op, rows.values + first, std::min(width, count - first));
    for (int64_t b = 0; b < op.k_blocks(); ++b) {
      const std::byte* keys[kMaxStrip];
      for (int64_t j = 0; j < width; ++j) {
        const bool past_end = first + j >= count;
        keys[j] = rows.keys[first + j] + (past_end ? 0 : b * kTileStride * op.element_bytes);
      }
      const int64_t depth = std::min<int64_t>(kTileStride, op.head_dim - b * kTileStride);
      op.kernels.pack_panel[op.element](keys, static_cast<int>(depth), work.panel);
      multiply(op, work.queries + b * n * kTileStride, n, work.panel, depth, work.scores + first,
               kTileStride, b > 0);
    }
  }
}

// Scores to weights; what is summed up so far is scaled to the new maximum.
void weigh_block(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work) {
  float scale = op.options.scale;
  if (op.kv.k_scale != nullptr) scale *= op.kv.k_scale[span.kv_head];
  const auto count = static_cast<int>(end - begin);
  for (int64_t i = 0; i < op.queries(span); ++i) {
    float* scores = work.scores + i * kTileStride;
    const int64_t row = op.row_of(span, i);
    const int64_t seen_begin = std::max(begin, op.first_token(row)) - begin;
    const int64_t seen_end = std::min(end, op.position(row) + 1) - begin;
    if (seen_begin >= seen_end) {
      std::fill_n(scores, count, 0.0f);
      continue;
    }
    float left = scale;  // to multiply by
    if (op.options.cap != 0.0f) {
      op.kernels.cap(scores, count, std::exchange(left, 1.0f), op.options.cap);
    }
    if (op.options.bias) {
      const float* bias = op.bias_of(span, i) + begin;
      const float by = std::exchange(left, 1.0f);
      for (int64_t t = seen_begin; t < seen_end; ++t) scores[t] = scores[t] * by + bias[t];
    }
    const float correction =
        op.kernels.softmax(scores, static_cast<int>(seen_begin), static_cast<int>(seen_end), count,
                           left, work.chunk.states[i]);
    if (correction == 1.0f) continue;
    float* sums = work.chunk.sums + i * op.padded_dim;
    for (int64_t d = 0; d < op.padded_dim; ++d) sums[d] *= correction;
  }
}

// sums[i] += sum of weight[i][t] * v_t
void sum_block(const Op& op, const Span& span, BlockRows& rows, int64_t count, const Work& work) {
  const int64_t width = op.kernels.strip;
  const int64_t strip_bytes = width * op.element_bytes;
  for (int64_t d = 0; d < op.v_dim; d += width) {
    const int64_t columns = std::min(width, op.v_dim - d);
    op.kernels.copy_panel[op.element](rows.values, static_cast<int>(count),
                                      static_cast<int>(columns), work.panel);
    multiply(op, work.scores, op.queries(span), work.panel, count, work.chunk.sums + d,
             op.padded_dim, true);
    if (d + width >= op.v_dim) break;
    for (int64_t t = 0; t < count; ++t) rows.values[t] += strip_bytes;
  }
}

void attend_chunk(const Op& op, const Span& span, int64_t chunk, const Work& work) {
  work.chunk.clear(op, op.queries(span));
  const int64_t chunk_end = std::min((chunk + 1) * kChunkTokens, op.end_token(span));
  for (int64_t begin = chunk * kChunkTokens; begin < chunk_end; begin += kBlockTokens) {
    const int64_t end = std::min(begin + kBlockTokens, chunk_end);
    if (end <= op.first_token(span.first_row)) continue;
    BlockRows rows(op, span, begin, end, work);
    score_block(op, span, rows, end - begin, work);
    weigh_block(op, span, begin, end, work);
    sum_block(op, span, rows, end - begin, work);
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
  const int64_t rows_at_once = std::max<int64_t>(1, kMaxQueries / op.group);
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
  // The longest first, so that no thread is left with one at the end.
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
    load_queries(op, span, work);
    work.total.clear(op, n);
    for (int64_t chunk = op.first_chunk(span); chunk < op.end_chunk(span); ++chunk) {
      attend_chunk(op, span, chunk, work);
      merge_into(op, n, work.total, work.chunk);
    }
    write_out(op, span, work.total);
  });
}

// One job per span and chunk, where there are too few spans to go round; then the same merges in
// the same order.
void attend_split(const Op& op, ThreadPool& pool, AttentionScratch& scratch,
                  const std::vector<Span>& spans) {
  struct Piece {
    int64_t span;
    int64_t chunk;
    int64_t offset;  // of its Partial
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
    work.chunk = Partial::at(partials + piece.offset, n);
    load_queries(op, span, work);
    attend_chunk(op, span, piece.chunk, work);
  });
  pool.run(static_cast<int64_t>(spans.size()), [&](int64_t job, int thread) {
    const Span& span = spans[job];
    const int64_t n = op.queries(span);
    const Work work(op, n, scratch.threads[thread]);
    work.total.clear(op, n);
    for (int64_t p = first_piece[job]; p < first_piece[job + 1]; ++p) {
      merge_into(op, n, work.total, Partial::at(partials + pieces[p].offset, n));
    }
    write_out(op, span, work.total);
  });
}

}  // namespace

void cpu_attention(const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch,
                   const ConstTensorView& q, const PagedKv& kv, const Batch& batch,
                   const AttentionOptions& options, const TensorView& out) {
  const int64_t n_heads = q.shape[1];
  const int64_t head_dim = q.shape[2];
  const DType element = kv.latent_blocks ? DType::f32 : kv.dtype;
  const Op op{kernels,
              q.as<float>(),
              out.as<float>(),
              kv,
              batch,
              options,
              n_heads,
              n_heads / kv.n_kv_heads,
              head_dim,
              kv.v_dim(),
              divide_up(kv.v_dim(), kernels.strip) * kernels.strip,
              element,
              static_cast<int64_t>(dtype_bytes(element))};
  scratch.threads.resize(static_cast<size_t>(pool.threads()));
  const std::vector<Span> spans = make_spans(op);
  bool long_context = false;
  for (const Span& span : spans) {
    long_context = long_context || op.end_chunk(span) - op.first_chunk(span) > 1;
  }
  const bool few = static_cast<int64_t>(spans.size()) < pool.threads() * kJobsPerThread;
  if (few && long_context && pool.threads() > 1) {
    attend_split(op, pool, scratch, spans);
  } else {
    attend_whole(op, pool, scratch, spans);
  }
}

}  // namespace fp8kv
