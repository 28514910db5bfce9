// Attention of many rows at once over the cache. A block takes a tile of queries of one KV head. It
// streams keys and values through shared memory, where all its warps read them. A column is a query
// of one row and head, so grouped heads share every tile that is read.
#include "kernels/attention/lane_queue.cuh"
#include "kernels/attention/query_tile.cuh"
#include "kernels/attention/slab.cuh"
#include "kernels/blocks/sequence.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
// Columns per warp. Heads of 256 elements leave registers for one operand of columns, others for 16
// columns.
template <int kHeadDim>
inline constexpr int kWarpCols = kHeadDim > 128 ? Mma::kCols : 16;
template <int kHeadDim>
inline constexpr int kBlockCols = kWarps* kWarpCols<kHeadDim>;
// Code for a cap takes 20 registers of the kernels for smaller heads, and none of the others.
constexpr int kLeastCappedHead = 128;

struct Prefill {
  AttentionArguments attention;
  int32_t tiles;  // an upper bound; see tile_at
  ScoreCap cap;
  bool bf16;  // activations: else f16
};

template <typename Cache, int kHeadDim>
class Worker {
 public:
  using Keys = KeyPieces<Cache, kHeadDim>;
  using Values = ValuePieces<Cache, kHeadDim>;
  using T = typename Operand<Cache>::Type;
  using Tile = Slab<Cache, kHeadDim>;
  static constexpr size_t kSharedBytes = size_t{kSlabStages} * Tile::kBytes;
  static constexpr int kFrags = kHeadDim / 16;
  static constexpr int kColFrags = kWarpCols<kHeadDim> / Mma::kCols;
  static constexpr int kCols = kColFrags * Mma::kLaneCols;  // columns of a lane's accumulators

  __device__ Worker(const Prefill& prefill, const QueryTile& tile, int kv_head, Shared& shared)
      : attention_(prefill.attention),
        cap_(prefill.cap),
        bf16_(prefill.bf16),
        tile_{tile, kv_head, attention_.n_heads / attention_.kv.n_kv_heads, attention_.n_heads},
        ring_(shared.take<unsigned char>(kSharedBytes)) {}

  __device__ inline void run() {
    start();
    const int last_row = tile_.row(kBlockCols<kHeadDim> - 1), end_row = tile_.tile.end_row;
    const Visible first = visible_of(tile_.row(0));
    const int end = visible_of(last_row < end_row ? last_row : end_row - 1).end;
    const int begin = first.begin / Tile::kTokens * Tile::kTokens;
    fetch(begin, end, 0);
    int stage = 0;
    for (int token = begin; token < end; token += Tile::kTokens) {
      async_wait<0>();
      // Now all threads see the slab, and all have finished the one before, which the next fetch
      // overwrites.
      block_sync();
      fetch(token + Tile::kTokens, end, 1 - stage);
      consume(token, ring_ + stage * Tile::kBytes);
      stage = 1 - stage;
    }
    async_wait<0>();
    finish();
  }

 private:
  __device__ inline Visible visible_of(int row) const {
    return visible_at(attention_, attention_.rows.positions[row]);
  }

  // Column `col` of this warp, among those of the tile.
  static __device__ inline int in_tile(int col) { return warp_index() * kWarpCols<kHeadDim> + col; }

  __device__ inline void start() {
    const float scale = score_scale<Cache>(attention_, tile_.kv_head);
#pragma unroll
    for (int frag = 0; frag < kColFrags; ++frag) {
      const int own = in_tile(frag * Mma::kCols + Mma::row(lane_index()));
      const int exponent = query_operand<Cache, kHeadDim, kLoads<Cache>>(
          attention_.q, tile_.place(own, kHeadDim), tile_.has(own), bf16_, query_[frag]);
#pragma unroll
      for (int i = 0; i < Mma::kLaneCols; ++i) {
        const int col = Mma::acc_col(lane_index(), i);
        const int at = frag * Mma::kLaneCols + i;
        factor_[at] = scale * power_of_two(warp_from(exponent, Mma::lane_of_col(col)));
        const int in_block = in_tile(frag * Mma::kCols + col);
        visible_[at] = tile_.has(in_block) ? visible_of(tile_.row(in_block)) : Visible{0, 0};
        max_[at] = -INFINITY;
        sum_[at] = 0.0f;
      }
#pragma unroll
      for (int i = 0; i < kFrags; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) acc_[frag][i][j] = 0.0f;
      }
    }
    common_ = visible_[0];
#pragma unroll
    for (int at = 1; at < kCols; ++at) narrow(visible_[at]);
#pragma unroll
    for (int mask = 1; mask < kWarp; mask *= 2) {
      narrow({warp_xor(common_.begin, mask), warp_xor(common_.end, mask)});
    }
  }

  __device__ inline void narrow(const Visible& to) {
    common_.begin = to.begin > common_.begin ? to.begin : common_.begin;
    common_.end = to.end < common_.end ? to.end : common_.end;
  }

  // Fetches the slab of tokens from `first` on; tokens from `end` on become zero.
  __device__ inline void fetch(int first, int end, int stage) {
    if (first < end) {
      const PagedKv& kv = attention_.kv;
      const int32_t* pages = attention_.rows.page_table +
                             static_cast<int64_t>(tile_.tile.sequence) * attention_.rows.max_pages +
                             first / kv.page_size;
      const int first_slot = first % kv.page_size;
      constexpr int kPieces = Tile::kRowBytes / 16;
      for (int i = thread_index(); i < Tile::kTokens * kPieces; i += kThreads) {
        const int in_slab = i / kPieces, piece = i % kPieces;
        const bool valid = first + in_slab < end;
        int slot = first_slot + in_slab, page = 0;
        for (; slot >= kv.page_size; slot -= kv.page_size) ++page;
        const int64_t at = (valid ? kv.offset(pages[page], tile_.kv_head, slot) : 0) *
                               static_cast<int64_t>(sizeof(Cache)) +
                           piece * 16;
        unsigned char* to = ring_ + stage * Tile::kBytes + piece * 16;
        copy_async<16>(to + in_slab * Tile::kKeyPitch, static_cast<const unsigned char*>(kv.k) + at,
                       valid);
        copy_async<16>(to + Tile::kKeyBytes + in_slab * Tile::kValuePitch,
                       static_cast<const unsigned char*>(kv.v) + at, valid);
      }
    }
    async_commit();
  }

  __device__ inline void consume(int first, const unsigned char* slab) {
    float scores[Tile::kGroups][kColFrags][4] = {};
#pragma unroll
    for (int group = 0; group < Tile::kGroups; ++group) {
      add_scores(slab + group * kTileTokens * Tile::kKeyPitch, scores[group]);
    }
    softmax(first, scores);
#pragma unroll
    for (int group = 0; group < Tile::kGroups; ++group) {
      add_outputs(slab + Tile::kKeyBytes + group * kTileTokens * Tile::kValuePitch, scores[group]);
    }
  }

  __device__ inline void add_scores(const unsigned char* keys, float (*scores)[4]) {
    uint32_t words[Mma::kRowsPerLane][Keys::kWords];
    if constexpr (!kLoads<Cache>) {
      const int lane = lane_index();
#pragma unroll
      for (int row = 0; row < Mma::kRowsPerLane; ++row) {
        read_pieces<Keys::kPieceBytes, Keys::kPieces>(
            keys + (Mma::row(lane) + 8 * row) * Tile::kKeyPitch + Keys::offset(0, Mma::group(lane)),
            Keys::offset(1, 0), words[row]);
      }
    }
#pragma unroll
    for (int step = 0; step < kFrags; ++step) {
      uint32_t a[2 * Mma::kRowsPerLane];
      if constexpr (kLoads<Cache>) {
        Mma::load<false>(keys + step * 32, Tile::kKeyPitch, a);
      } else {
        key_operand<Cache, Keys::kWords>(words, step, a);
      }
#pragma unroll
      for (int frag = 0; frag < kColFrags; ++frag) {
        Mma::run<T>(scores[frag], a, query_[frag] + 2 * step);
      }
    }
  }

  // Calls work(score, number of the token in the slab, number of the column in the lane).
  template <typename Work>
  static __device__ inline void each_score(float (*scores)[kColFrags][4], const Work& work) {
#pragma unroll
    for (int group = 0; group < Tile::kGroups; ++group) {
#pragma unroll
      for (int frag = 0; frag < kColFrags; ++frag) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          work(scores[group][frag][i], group * kTileTokens + Mma::acc_row(lane_index(), i),
               frag * Mma::kLaneCols + i % Mma::kLaneCols);
        }
      }
    }
  }

  // Turns scores into weights, and scales the sums so far down to the new maximum.
  __device__ inline void softmax(int first, float (*scores)[kColFrags][4]) {
    each_score(scores, [&](float& score, int, int at) { score *= factor_[at]; });
    if constexpr (kHeadDim >= kLeastCappedHead) {
      if (cap_.most != 0.0f) {
        each_score(scores, [&](float& score, int, int) { score = capped(cap_, score); });
      }
    }
    if (first < common_.begin || first + Tile::kTokens > common_.end) {
      // Masks the scores of tokens that a column does not see.
      each_score(scores, [&](float& score, int in_slab, int at) {
        const bool sees =
            first + in_slab >= visible_[at].begin && first + in_slab < visible_[at].end;
        if (!sees) score = -INFINITY;
      });
    }
#pragma unroll
    for (int at = 0; at < kCols; ++at) {
      const int frag = at / Mma::kLaneCols, col = at % Mma::kLaneCols;
      float largest = max_[at];
#pragma unroll
      for (int group = 0; group < Tile::kGroups; ++group) {
#pragma unroll
        for (int i = col; i < 4; i += Mma::kLaneCols) {
          largest = fmaxf(largest, scores[group][frag][i]);
        }
      }
#pragma unroll
      for (int mask = Mma::kColStride; mask < kWarp; mask *= 2) {
        largest = fmaxf(largest, warp_xor(largest, mask));
      }
      // A row that has seen no token has no maximum; any finite number then gives weights of zero.
      const float reference = largest == -INFINITY ? 0.0f : largest;
      const float correction = exp2_fast(max_[at] - reference);
      max_[at] = largest;
      sum_[at] *= correction;
#pragma unroll
      for (int group = 0; group < Tile::kGroups; ++group) {
#pragma unroll
        for (int i = col; i < 4; i += Mma::kLaneCols) {
          scores[group][frag][i] =
              exp2_fast(scores[group][frag][i] - (reference - kWeightExponent));
          sum_[at] += scores[group][frag][i];
        }
      }
#pragma unroll
      for (int i = 0; i < kFrags; ++i) {
#pragma unroll
        for (int j = col; j < 4; j += Mma::kLaneCols) acc_[frag][i][j] *= correction;
      }
    }
  }

  __device__ inline void add_outputs(const unsigned char* values, const float (*scores)[4]) {
    uint32_t weights[kColFrags][2];
#pragma unroll
    for (int frag = 0; frag < kColFrags; ++frag) {
      const uint32_t packed[2] = {packed_pair<T>(scores[frag][0], scores[frag][1]),
                                  packed_pair<T>(scores[frag][2], scores[frag][3])};
      Mma::scores_to_operand(packed, weights[frag]);
    }
    if constexpr (kLoads<Cache>) {
#pragma unroll
      for (int i = 0; i < kFrags; ++i) {
        uint32_t a[2 * Mma::kRowsPerLane];
        Mma::load<true>(values + i * 32, Tile::kValuePitch, a);
#pragma unroll
        for (int frag = 0; frag < kColFrags; ++frag) Mma::run<T>(acc_[frag][i], a, weights[frag]);
      }
    } else {
      const int lane = lane_index();
      uint32_t words[4][Values::kWords];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        read_pieces<Values::kPieceBytes, Values::kPieces>(
            values + Mma::depth(lane, i) * Tile::kValuePitch + Values::offset(0, Mma::row(lane)),
            Values::offset(1, 0), words[i]);
      }
      add_values<Cache, kHeadDim, Values::kWords, kColFrags>(words, weights, acc_);
    }
  }

  // The dimension of element j of accumulator i.
  static __device__ inline int dim_of(int i, int j) {
    if constexpr (kLoads<Cache>) return 16 * i + Mma::acc_row(lane_index(), j);
    return value_dim<Cache, kHeadDim>(i, j);
  }

  __device__ inline void add_sinks() {
#pragma unroll
    for (int at = 0; at < kCols; ++at) {
      const int col =
          at / Mma::kLaneCols * Mma::kCols + Mma::acc_col(lane_index(), at % Mma::kLaneCols);
      const int head = tile_.head(in_tile(col));
      sum_[at] += sink_weight(attention_.scores, head, max_[at]);
    }
  }

  __device__ inline void finish() {
#pragma unroll
    for (int at = 0; at < kCols; ++at) {
#pragma unroll
      for (int mask = Mma::kColStride; mask < kWarp; mask *= 2) {
        sum_[at] += warp_xor(sum_[at], mask);
      }
    }
    if (attention_.scores.sinks != nullptr) add_sinks();
    const float scale = output_scale<Cache>(attention_, tile_.kv_head);
#pragma unroll
    for (int frag = 0; frag < kColFrags; ++frag) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = frag * Mma::kLaneCols + j % Mma::kLaneCols;
        const int col = frag * Mma::kCols + Mma::acc_col(lane_index(), j);
        if (!tile_.has(in_tile(col))) continue;
        const int64_t out = tile_.place(in_tile(col), kHeadDim);
#pragma unroll
        for (int i = 0; i < kFrags; ++i) {
          store_activation(attention_.out, out + dim_of(i, j), bf16_,
                           acc_[frag][i][j] / sum_[at] * scale);
        }
      }
    }
  }

  const AttentionArguments& attention_;
  const ScoreCap& cap_;
  bool bf16_;
  TileQueries tile_;
  unsigned char* ring_;
  uint32_t query_[kColFrags][2 * kFrags];
  float factor_[kCols];
  Visible visible_[kCols];
  Visible common_;  // tokens that all columns of the warp see
  float max_[kCols];
  float sum_[kCols];
  float acc_[kColFrags][kFrags][4];
};

// One block per tile of queries (x) and KV head (y).
template <typename Cache, int kHeadDim>
__global__ void __launch_bounds__(kThreads) attention_prefill_kernel(Prefill prefill) {
  after_previous();
  Shared shared;
  const AttentionArguments& attention = prefill.attention;
  // The longest tiles come first: tiles that see the most tokens start early.
  const int number = prefill.tiles - 1 - static_cast<int>(block_index().x);
  const QueryTile tile = tile_at(attention.rows, attention.n_heads / attention.kv.n_kv_heads,
                                 kBlockCols<kHeadDim>, number);
  if (tile.sequence < 0) return;
  Worker<Cache, kHeadDim>(prefill, tile, static_cast<int>(block_index().y), shared).run();
}

template <typename Cache, int kHeadDim>
void run(Stream stream, Prefill prefill) {
  const AttentionArguments& attention = prefill.attention;
  const int64_t cols = int64_t{attention.rows.n} * (attention.n_heads / attention.kv.n_kv_heads);
  // An upper bound: every sequence may end with an incomplete tile.
  prefill.tiles = static_cast<int32_t>(cols / kBlockCols<kHeadDim>) + attention.rows.n_seqs;
  launch("attention", attention_prefill_kernel<Cache, kHeadDim>,
         {static_cast<unsigned>(prefill.tiles),
          static_cast<unsigned>(prefill.attention.kv.n_kv_heads)},
         kThreads, Worker<Cache, kHeadDim>::kSharedBytes, stream, prefill);
}

template <typename Cache>
void run_head_dim(Stream stream, const Prefill& prefill) {
  switch (prefill.attention.kv.head_dim) {
    case 64:
      return run<Cache, 64>(stream, prefill);
    case 96:
      return run<Cache, 96>(stream, prefill);
    case 128:
      return run<Cache, 128>(stream, prefill);
    default:
      return run<Cache, 256>(stream, prefill);
  }
}

}  // namespace

bool takes_prefill(const AttentionArguments& arguments) {
  return arguments.scores.cap == 0.0f || arguments.kv.head_dim >= kLeastCappedHead;
}

void attention_prefill(Stream stream, DType activations, const AttentionArguments& arguments) {
  Prefill prefill;
  prefill.attention = arguments;
  prefill.cap = score_cap(arguments.scores.cap);
  prefill.bf16 = activations == DType::bf16;
  with_elements(arguments.kv.k_format, [&]<typename Cache>(Cache) {
    if constexpr (sizeof(Cache) <= 2) run_head_dim<Cache>(stream, prefill);
  });
}

}  // namespace fp8kv::FP8KV_GPU
