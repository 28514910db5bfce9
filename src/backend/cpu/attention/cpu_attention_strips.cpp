// Products of attention in strips of vectors, in f32.
#include <cstring>

#include "backend/cpu/attention/cpu_attention_op.h"

namespace fp8kv::attention {
namespace {

int64_t query_floats(const Op& op, int64_t queries) {
  return divide_up(op.head_dim, kTileStride) * queries * kTileStride;
}

int64_t panel_floats(const Op& op, int64_t /*queries*/) {
  return kTileStride * op.kernels.strip;
}

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

// scores[i][t] = q_i . k_t; fetches values and the keys of the next strip meanwhile.
void score(const Op& op, const Span& span, const BlockRows& rows, const BlockRows& next,
           const Work& work) {
  const int64_t n = op.queries(span), count = rows.count;
  const int64_t width = op.kernels.strip;
  const CpuKernels::KeyTile* key_tiles = op.kernels.key_tiles[op.element];
  const bool by_key_tiles = key_tiles != nullptr && n <= kMaxRowTiles && op.k_blocks() == 1 &&
                            op.head_dim % kKeyDepth == 0;
  prefetch<Fetch::near>(op, rows.keys, std::min(width, count));
  for (int64_t first = 0; first < count; first += width) {
    prefetch<Fetch::near>(op, rows.keys + first + width,
                          std::clamp<int64_t>(count - first - width, 0, width));
    const int64_t then = std::clamp<int64_t>(next.count - first, 0, width);
    prefetch<Fetch::far>(op, next.keys + first, then);
    prefetch<Fetch::far>(op, next.values + first, then);
    if (by_key_tiles) {
      key_tiles[n - 1](work.queries, rows.keys + first, static_cast<int>(op.head_dim),
                       work.scores + first, kTileStride);
      continue;
    }
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

// sums[i] += sum of weight[i][t] * v_t
void sum(const Op& op, const Span& span, const BlockRows& rows, const BlockRows& /*next*/,
         const Work& work) {
  const int64_t count = rows.count;
  const std::byte* values[kBlockTokens];
  std::copy_n(rows.values, count, values);
  const int64_t n = op.queries(span), width = op.kernels.strip;
  const CpuKernels::RowTile* row_tiles = op.kernels.row_tiles[op.element];
  if (row_tiles != nullptr && n <= kMaxRowTiles && op.v_dim % width == 0) {
    row_tiles[n - 1](work.scores, values, static_cast<int>(count), op.v_dim, work.chunk.sums,
                     op.padded_dim);
    return;
  }
  const int64_t strip_bytes = width * op.element_bytes;
  for (int64_t d = 0; d < op.v_dim; d += width) {
    const int64_t columns = std::min(width, op.v_dim - d);
    op.kernels.copy_panel[op.element](values, static_cast<int>(count), static_cast<int>(columns),
                                      work.panel);
    multiply(op, work.scores, n, work.panel, count, work.chunk.sums + d, op.padded_dim, true);
    if (d + width >= op.v_dim) break;
    for (int64_t t = 0; t < count; ++t) values[t] += strip_bytes;
  }
}

}  // namespace

const AttentionKernels kInStrips = {query_floats, panel_floats, load_queries, score, sum};

}  // namespace fp8kv::attention
