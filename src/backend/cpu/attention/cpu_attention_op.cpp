#include "backend/cpu/attention/cpu_attention_op.h"

#include "backend/cpu/memory/cpu_kv_rows.h"

namespace fp8kv::attention {
namespace {

// Stands in for tokens past the last one.
alignas(64) constexpr std::array<std::byte, kTileStride * sizeof(float)> kZeroRow{};

// The rows of K or V of plain elements.
struct Pool {
  const void* data;
  int64_t row_bytes;

  const std::byte* row(int64_t number) const {
    return static_cast<const std::byte*>(data) + number * row_bytes;
  }
};

// Finds the rows of tokens [begin, end) that may lie apart.
void find_apart(const Op& op, const Span& span, Pool pool, int64_t begin, int64_t end,
                const std::byte** rows) {
  for (int64_t t = begin; t < end; ++t) {
    const int64_t at = op.position_at(span, t);
    const int64_t page = op.pages(span)[at / op.kv.page_size];
    rows[t - begin] = pool.row(op.kv.row(page, span.kv_head, at % op.kv.page_size));
  }
}

// Finds the K or V rows of tokens [begin, end) of the span's head. In a page, a head's tokens
// follow one another.
void find_tokens(const Op& op, const Span& span, Pool pool, int64_t begin, int64_t end,
                 const std::byte** rows) {
  const int32_t* pages = op.pages(span);
  if (op.options.chosen || op.key_step > 1) {
    return find_apart(op, span, pool, begin, end, rows);
  }
  int64_t page = begin / op.kv.page_size;
  int64_t in_page = begin % op.kv.page_size;
  for (int64_t t = begin; t < end; ++page, in_page = 0) {
    const std::byte* from = pool.row(op.kv.row(pages[page], span.kv_head, in_page));
    for (; in_page < op.kv.page_size && t < end; ++in_page, ++t, from += pool.row_bytes) {
      rows[t - begin] = from;
    }
  }
}

// Reads the tokens' rows as floats.
void read_tokens(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work,
                 BlockRows& rows) {
  const KvRow k_row = op.kv.k_row(), v_row = op.kv.v_row();
  for (int64_t t = begin; t < end; ++t) {
    const int64_t at = op.position_at(span, t);
    const int64_t page = op.pages(span)[at / op.kv.page_size];
    const int64_t row = op.kv.row(page, span.kv_head, at % op.kv.page_size);
    float* keys = work.tokens + (t - begin) * op.token_floats();
    float* values = keys + op.head_dim;
    read_kv_row(op.kernels, k_row, static_cast<const std::byte*>(op.kv.k) + row * k_row.bytes(),
                keys);
    if (op.kv.v_in_k > 0) {
      values -= op.v_dim;
    } else {
      read_kv_row(op.kernels, v_row, static_cast<const std::byte*>(op.kv.v) + row * v_row.bytes(),
                  values);
    }
    rows.keys[t - begin] = reinterpret_cast<const std::byte*>(keys);
    rows.values[t - begin] = reinterpret_cast<const std::byte*>(values);
  }
}

}  // namespace

Work::Work(const Op& op, int64_t n, Scratch& scratch) {
  const int64_t tokens_size = op.as_floats ? kBlockTokens * op.token_floats() : 0;
  const int64_t queries_size = kernels_of(op).query_floats(op, n);
  const int64_t scores_size = op.padded_queries(n) * kTileStride;
  const int64_t panel_size = kernels_of(op).panel_floats(op, n);
  const int64_t partial_size = Partial::floats(op, n);
  panel = scratch.floats(static_cast<size_t>(panel_size + tokens_size + queries_size + scores_size +
                                             2 * partial_size));
  tokens = panel + panel_size;
  queries = tokens + tokens_size;
  scores = queries + queries_size;
  chunk = Partial::at(op, scores + scores_size, n);
  total = Partial::at(op, scores + scores_size + partial_size, n);
}

BlockRows::BlockRows(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work)
    : count(end - begin) {
  if (op.as_floats) {
    read_tokens(op, span, begin, end, work, *this);
  } else {
    find_tokens(op, span, {op.kv.k, op.row_bytes()}, begin, end, keys);
    find_tokens(op, span, {op.kv.v, op.kv.v_step() * op.element_bytes}, begin, end, values);
  }
  std::fill_n(keys + (end - begin), kMaxStrip, kZeroRow.data());
}

}  // namespace fp8kv::attention
