#include "backend/cpu/cpu_attention_op.h"

#include <cstring>

namespace fp8kv::attention {
namespace {

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

// The tokens of latents in blocks, as the elements of K, the last of which are V.
void read_tokens(const Op& op, const Span& span, int64_t begin, int64_t end, const Work& work,
                 BlockRows& rows) {
  for (int64_t t = begin; t < end; ++t) {
    float* to = work.tokens + (t - begin) * op.head_dim;
    const int64_t page = op.pages(span)[t / op.kv.page_size];
    read_blocks(
        op, static_cast<const std::byte*>(op.kv.k) + op.kv.block_offset(page, t % op.kv.page_size),
        to);
    rows.keys[t - begin] = reinterpret_cast<const std::byte*>(to);
    rows.values[t - begin] = reinterpret_cast<const std::byte*>(to + op.head_dim - op.v_dim);
  }
}

}  // namespace

Work::Work(const Op& op, int64_t n, Scratch& scratch) {
  const int64_t tokens_size = op.kv.latent_blocks ? kBlockTokens * op.head_dim : 0;
  const int64_t queries_size = way_of(op).query_floats(op, n);
  const int64_t scores_size = op.room(n) * kTileStride;
  const int64_t panel_size = way_of(op).panel_floats(op, n);
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
  if (op.kv.latent_blocks) {
    read_tokens(op, span, begin, end, work, *this);
  } else {
    find_tokens(op, span, op.kv.k, begin, end, keys);
    find_tokens(op, span, op.kv.v, begin, end, values);
  }
  std::fill_n(keys + (end - begin), kMaxStrip, kZeroRow.data());
}

}  // namespace fp8kv::attention
