// Attention by matrix instructions for heads of any multiple of 16 elements, latents, chosen tokens
// and biases. A block takes a tile of queries of one KV head. It turns a slab of tokens at a time
// into 16-bit operands in shared memory. Its warps share the scores among them by tokens and
// queries, and the results by elements of V. In steps of few rows, blocks cut a row over its
// context as attention_decode does.
#include "kernels/attention/attention.cuh"
#include "kernels/attention/decode_results.cuh"
#include "kernels/attention/query_tile.cuh"
#include "kernels/attention/wide_slab.cuh"
#include "kernels/attention/wide_weights.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kColFrags = kWideCols / Mma::kCols;
constexpr int kGroups = kWideTokens / kTileTokens;
// Parts of 16 elements of V that a warp sums up.
constexpr int kParts = kMostHeadDim / 16 / kWideWarps;

struct Wide {
  Decode decode;  // without memory for partial results, rows are not cut
  int32_t tiles;  // an upper bound; see tile_at

  FP8KV_HD bool cut() const { return decode.partials != nullptr; }
  // Whether the queries of a tile are of one row.
  FP8KV_HD bool by_row() const { return cut() || decode.attention.scores.chosen != nullptr; }
};

template <typename Cache>
class Worker {
 public:
  using T = typename Operand<Cache>::Type;

  __device__ Worker(const Wide& wide, const QueryTile& tile, int kv_head, Shared& shared)
      : wide_(wide),
        attention_(wide.decode.attention),
        tile_{tile, kv_head, attention_.n_heads / attention_.kv.n_kv_heads, attention_.n_heads},
        tokens_{attention_.kv,
                attention_.rows.page_table +
                    static_cast<int64_t>(tile.sequence) * attention_.rows.max_pages,
                kv_head, chosen_tokens(attention_.scores, tile.first_row, kv_head)},
        key_pitch_(pitch_of(attention_.kv.head_dim)),
        value_pitch_(attention_.kv.v_in_k > 0 ? key_pitch_ : pitch_of(attention_.v_dim)),
        queries_(shared.take<unsigned char>(static_cast<size_t>(kWideCols) * key_pitch_)),
        slab_(shared.take<unsigned char>(static_cast<size_t>(kWideTokens) *
                                         pitch_of(slab_dim(attention_.kv)))),
        columns_(shared.take<Column>(kWideCols)),
        weights_(shared) {}

  // The larger of the rows that a slab holds.
  static FP8KV_HD int slab_dim(const PagedKv& kv) {
    return kv.head_dim > kv.v_dim() ? kv.head_dim : kv.v_dim();
  }

  static size_t shared_bytes(const PagedKv& kv) {
    return static_cast<size_t>(kWideCols) * pitch_of(kv.head_dim) +
           static_cast<size_t>(kWideTokens) * pitch_of(slab_dim(kv)) + kWideCols * sizeof(Column) +
           WideWeights<T>::kSharedBytes;
  }

  __device__ inline void run() {
    start();
    block_sync();
    int begin = columns_[0].begin, end = 0;
    for (int col = 0; col < kWideCols; ++col) {
      if (columns_[col].end > end) end = columns_[col].end;
    }
    begin = begin / kWideTokens * kWideTokens;
    const PagedKv& kv = attention_.kv;
    const auto fetch_keys = [&](int token) {
      fetched_.fetch(tokens_, {token, end}, kv.k, kv.head_dim);
    };
    fetch_keys(begin);
    for (int token = begin; token < end; token += kWideTokens) {
      fetched_.store(kv.head_dim, slab_);
      block_sync();
      if (kv.v_in_k > 0) {
        fetch_keys(token + kWideTokens);
      } else {
        fetched_.fetch(tokens_, {token, end}, kv.v, attention_.v_dim);
      }
      find_scores(token);
      block_sync();
      if (kv.v_in_k == 0) fetched_.store(attention_.v_dim, slab_);
      weights_.find();
      block_sync();
      if (kv.v_in_k == 0) fetch_keys(token + kWideTokens);
      add_values();
      block_sync();
    }
    finish();
  }

 private:
  // A query of the tile.
  struct Column {
    int begin, end;  // the tokens that it sees
    float factor;    // of its scores
  };

  // Loads the queries, and finds what their columns see.
  __device__ inline void start() {
    const float scale = score_scale<Cache>(attention_, tile_.kv_head);
    for (int col = warp_index(); col < kWideCols; col += kWideWarps) {
      const bool present = tile_.has(col);
      const int exponent = load_query(col, present);
      Visible visible = {0, 0};
      if (present) {
        visible = places_of(attention_, tile_.row(col));
        if (wide_.cut()) visible = chunk_of(visible, static_cast<int>(block_index().z));
      }
      if (lane_index() == 0) {
        columns_[col] = {visible.begin, visible.end, scale * power_of_two(exponent)};
      }
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int frag = 0; frag < kColFrags; ++frag) {
#pragma unroll
        for (int i = 0; i < 4; ++i) acc_[part][frag][i] = 0.0f;
      }
    }
  }

  // Stores a query as operands, divided by a power of two that brings its largest value near 1.
  // Returns the exponent.
  __device__ inline int load_query(int col, bool present) const {
    const int dim = attention_.kv.head_dim;
    const uint16_t* from = static_cast<const uint16_t*>(attention_.q) + tile_.place(col, dim);
    const auto value = [&](uint16_t code) {
      return wide_.decode.bf16 ? Bf16{code}.value() : F16{code}.value();
    };
    float largest = 0.0f;
    if (present && !T::kIsBf16) {
      for (int d = 4 * lane_index(); d < dim; d += 4 * kWarp) {
        const auto codes = load_vec<4>(from + d);
        for (int i = 0; i < 4; ++i) largest = fmaxf(largest, fabsf(value(codes.x[i])));
      }
    }
    for (int mask = 1; mask < kWarp; mask *= 2) largest = fmaxf(largest, warp_xor(largest, mask));
    const int exponent = exponent_of(largest);
    const float factor = power_of_two(-exponent);
    unsigned char* to = queries_ + col * key_pitch_;
    for (int d = 4 * lane_index(); d < dim; d += 4 * kWarp) {
      Vec<uint16_t, 4> codes = {};
      if (present) codes = load_vec<4>(from + d);
      store_vec(
          reinterpret_cast<uint32_t*>(to + 2 * d),
          Vec<uint32_t, 2>{packed_pair<T>(value(codes.x[0]) * factor, value(codes.x[1]) * factor),
                           packed_pair<T>(value(codes.x[2]) * factor, value(codes.x[3]) * factor)});
    }
    return exponent;
  }

  // The scores of a slab, for exp2. Each warp computes 16 tokens for one operand of queries.
  __device__ inline void find_scores(int first) {
    const int steps = attention_.kv.head_dim / 16;
    for (int part = warp_index(); part < kGroups * kColFrags; part += kWideWarps) {
      const int group = part % kGroups, frag = part / kGroups;
      const unsigned char* keys = slab_ + group * kTileTokens * key_pitch_;
      const unsigned char* queries = queries_ + frag * Mma::kCols * key_pitch_;
      const auto add = [&](int step, float* sums) {
        uint32_t a[2 * Mma::kRowsPerLane], b[2];
        row_operand(keys + 32 * step, key_pitch_, a);
        column_operand(queries + 32 * step, key_pitch_, b);
        Mma::run<T>(sums, a, b);
      };
      float sums[2][4] = {};  // two, so that products wait half as long for one another
      int step = 0;
      for (; step + 1 < steps; step += 2) {
        add(step, sums[0]);
        add(step + 1, sums[1]);
      }
      if (step < steps) add(step, sums[0]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int in_slab = group * kTileTokens + Mma::acc_row(lane_index(), i);
        const int col = frag * Mma::kCols + Mma::acc_col(lane_index(), i);
        weights_.put_score(col, in_slab, score_of(col, first + in_slab, sums[0][i] + sums[1][i]));
      }
    }
  }

  __device__ inline float score_of(int col, int place, float product) const {
    const Column& own = columns_[col];
    if (place < own.begin || place >= own.end) return -INFINITY;
    float score = product * own.factor;
    if (wide_.decode.cap.most != 0.0f) score = capped(wide_.decode.cap, score);
    const ScoreOptions& options = attention_.scores;
    if (options.bias != nullptr) {
      score += options.bias[tile_.head(col) * options.positions + tokens_.chosen.position(place)] *
               kLog2E;
    }
    return score;
  }

  // Part `part` of a warp, among all parts of V.
  static __device__ inline int part_of_v(int part) {
    return part * kWideWarps + warp_index();
  }

  __device__ inline void add_values() {
    uint32_t weights[kGroups][kColFrags][2];
    float corrections[kColFrags][Mma::kLaneCols];
#pragma unroll
    for (int frag = 0; frag < kColFrags; ++frag) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        weights_.operand(frag, group, weights[group][frag]);
      }
#pragma unroll
      for (int i = 0; i < Mma::kLaneCols; ++i) {
        corrections[frag][i] =
            weights_.correction(frag * Mma::kCols + Mma::acc_col(lane_index(), i));
      }
    }
    const unsigned char* values =
        slab_ + 2 * (attention_.kv.v_in_k > 0 ? attention_.kv.head_dim - attention_.v_dim : 0);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      if (16 * part_of_v(part) >= attention_.v_dim) continue;
#pragma unroll
      for (int frag = 0; frag < kColFrags; ++frag) {
#pragma unroll
        for (int i = 0; i < 4; ++i) acc_[part][frag][i] *= corrections[frag][i % Mma::kLaneCols];
      }
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        uint32_t a[2 * Mma::kRowsPerLane];
        depth_operand(values + group * kTileTokens * value_pitch_ + 32 * part_of_v(part),
                      value_pitch_, a);
#pragma unroll
        for (int frag = 0; frag < kColFrags; ++frag) {
          Mma::run<T>(acc_[part][frag], a, weights[group][frag]);
        }
      }
    }
  }

  // See state_at. REQUIRES a tile of one row.
  __device__ inline int64_t state_of(int col) const {
    const int groups = wide_.decode.groups / attention_.kv.n_kv_heads;
    return state_at(wide_.decode, tile_.tile.first_row,
                    tile_.kv_head * groups + tile_.tile.first_col / kWideCols,
                    static_cast<int>(block_index().z), col);
  }

  __device__ inline void finish() {
    const ScoreOptions& options = attention_.scores;
    const bool partial =
        wide_.cut() && chunk_count(places_of(attention_, tile_.tile.first_row)) > 1;
    weights_.finish([&](int col, float largest, float sum) {
      if (!tile_.has(col)) return sum;
      if (partial) {
        store_vec(wide_.decode.states + 2 * state_of(col), Vec<float, 2>{largest, sum});
      } else if (options.sinks != nullptr) {
        sum += sink_weight(options, tile_.head(col), largest);
      }
      return sum;
    });
    block_sync();
    const float scale = output_scale<Cache>(attention_, tile_.kv_head);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int first = 16 * part_of_v(part);
      if (first >= attention_.v_dim) continue;
#pragma unroll
      for (int frag = 0; frag < kColFrags; ++frag) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int col = frag * Mma::kCols + Mma::acc_col(lane_index(), i);
          if (!tile_.has(col)) continue;
          const int dim = first + Mma::acc_row(lane_index(), i);
          const float sum = acc_[part][frag][i];
          if (partial) {
            wide_.decode.partials[state_of(col) * attention_.v_dim + dim] = sum * scale;
          } else {
            store_activation(attention_.out, tile_.place(col, attention_.v_dim) + dim,
                             wide_.decode.bf16, sum / weights_.total(col) * scale);
          }
        }
      }
    }
  }

  const Wide& wide_;
  const AttentionArguments& attention_;
  TileQueries tile_;
  WideTokens tokens_;  // with choices, those of the tile's row
  int key_pitch_;
  int value_pitch_;
  unsigned char* queries_;  // [kWideCols] operands
  unsigned char* slab_;     // [kWideTokens] operands: of K, and then of V if that is apart
  Column* columns_;         // [kWideCols]
  WideWeights<T> weights_;
  WideSlab<Cache> fetched_;
  float acc_[kParts][kColFrags][4];
};

// Tile `number`, if the queries of a tile are of one row.
__device__ inline QueryTile row_tile(const Rows& rows, int share, int number) {
  const int tiles = (share + kWideCols - 1) / kWideCols;
  const int row = number / tiles;
  return {sequence_of(rows, row), row, row + 1, number % tiles * kWideCols};
}

// One block per tile of queries (x), KV head (y) and chunk (z).
template <typename Cache>
__global__ void __launch_bounds__(kWideThreads) attention_wide_kernel(Wide wide) {
  after_previous();
  Shared shared;
  const AttentionArguments& attention = wide.decode.attention;
  const int share = attention.n_heads / attention.kv.n_kv_heads;
  // The longest tiles come first: tiles that see the most tokens start early.
  const int number = wide.tiles - 1 - static_cast<int>(block_index().x);
  const QueryTile tile = wide.by_row() ? row_tile(attention.rows, share, number)
                                       : tile_at(attention.rows, share, kWideCols, number);
  if (tile.sequence < 0) return;
  const int chunk = static_cast<int>(block_index().z);
  if (chunk > 0 && chunk >= chunk_count(places_of(attention, tile.first_row))) return;
  Worker<Cache>(wide, tile, static_cast<int>(block_index().y), shared).run();
}

template <typename Cache>
void run(Stream stream, const Wide& wide) {
  const PagedKv& kv = wide.decode.attention.kv;
  launch("attention", attention_wide_kernel<Cache>,
         {static_cast<unsigned>(wide.tiles), static_cast<unsigned>(kv.n_kv_heads),
          static_cast<unsigned>(wide.cut() ? wide.decode.max_chunks : 1)},
         kWideThreads, Worker<Cache>::shared_bytes(kv), stream, wide);
}

}  // namespace

bool takes_wide(DType activations, const AttentionArguments& arguments) {
  const PagedKv& kv = arguments.kv;
  // Biases of distances would take 25 registers of every kernel.
  if (arguments.scores.distance_states != nullptr) return false;
  return takes_operands(activations, arguments) && kv.head_dim % 16 == 0 &&
         kv.head_dim >= kLeastWideDim && kv.head_dim <= kMostWideDim && kv.v_dim() % 16 == 0 &&
         kv.v_dim() <= kMostHeadDim;
}

DecodeSizes wide_sizes(const AttentionArguments& arguments) {
  return sizes_of(decode_of(DType::f16, arguments, {}, kWideCols));
}

void attention_wide(Stream stream, DType activations, const AttentionArguments& arguments,
                    const DecodeScratch& scratch) {
  Wide wide{decode_of(activations, arguments, scratch, kWideCols), 0};
  const int64_t share = arguments.n_heads / arguments.kv.n_kv_heads, n = arguments.rows.n;
  // An upper bound: every sequence may end with an incomplete tile.
  wide.tiles = static_cast<int32_t>(wide.by_row() ? n * ((share + kWideCols - 1) / kWideCols)
                                                  : n * share / kWideCols + arguments.rows.n_seqs);
  with_elements(arguments.kv.k_format, [&]<typename Cache>(Cache) {
    if constexpr (sizeof(Cache) <= 2) run<Cache>(stream, wide);
  });
  if (wide.cut()) combine(stream, wide.decode);
}

}  // namespace fp8kv::FP8KV_GPU
