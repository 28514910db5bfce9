// Attention of single rows over a paged cache: split over the context, bound by reading it. Each
// warp takes a chunk of a sequence for the query heads of one KV head, and streams it through
// matrix instructions. A warp waits only for its own lanes. With asynchronous copies, it asks for
// the first tiles of its next chunk while it ends one. A second kernel adds up a row's chunks.
#include "kernels/attention/decode_items.cuh"
#include "kernels/attention/decode_results.cuh"
#include "kernels/attention/decode_tiles.cuh"
#include "kernels/attention/lane_queue.cuh"
#include "kernels/blocks/fragments.cuh"

namespace fp8kv::FP8KV_GPU {
namespace {

// Shared memory for data in flight: three such blocks fit an SM of the H100.
constexpr int kRingBytes = 64 * 1024;
// The most rows whose chunks a block counts by itself.
constexpr int kMaxRows = 1024;

// Warps of a block: four, or fewer if shared memory has no room for two tiles each.
template <typename Cache, int kHeadDim>
constexpr int warps_of_block() {
  using Keys = KeyPieces<Cache, kHeadDim>;
  using Values = ValuePieces<Cache, kHeadDim>;
  int warps = 4;
  while (kHasAsync && 2 * warps * kWarp * kLaneBytes < Keys, Values >> kRingBytes) warps /= 2;
  return warps;
}

// With kDeep a block is one warp, which has the block's shared memory to itself and reads further
// ahead. This is for single sequences, whose items are fewer than the device's multiprocessors: on
// an H200 a step of an 8B model over 7,168 tokens took 7.5 ms without, and takes 6.1 ms. The
// results have the same bits.
template <typename Cache, int kHeadDim, bool kDeep>
class Worker {
 public:
  using Keys = KeyPieces<Cache, kHeadDim>;
  using Values = ValuePieces<Cache, kHeadDim>;
  using T = typename Operand<Cache>::Type;
  static constexpr int kWarps = kDeep ? 1 : warps_of_block<Cache, kHeadDim>();
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kFitting = kRingBytes / (kLaneBytes<Keys, Values> * kThreads);
  static constexpr int kMostStages = kDeep ? 8 : 4;
  static constexpr int kStages = kFitting < 2 ? 2 : kFitting > kMostStages ? kMostStages : kFitting;
  using Queue = LaneQueue<Keys, Values, kThreads, kStages>;
  static constexpr int kFrags = kHeadDim / 16;
  // Adjacent dimensions of a lane's result that are stored together.
  static constexpr int kRun = Values::kPerPiece < 4 ? Values::kPerPiece : 4;
  // Two sums of scores, so that products wait half as long for one another. One sum where tiles in
  // flight are in registers.
  static constexpr int kSums = kHasAsync ? 2 : 1;
  // Blocks that share a multiprocessor, as far as shared memory and registers allow. On AMD, tiles
  // of long rows fill the registers: spilt registers would wait for all loads.
  static constexpr int kRowBytes = kHeadDim * static_cast<int>(sizeof(Cache));
  static constexpr int kBlocks = kRowBytes > 256 ? (kHasAsync ? 3 : 1)
                                 : kHeadDim > 128 || (!kHasAsync && kRowBytes == 256) ? 2
                                                                                      : 3;

  __device__ Worker(const Decode& decode, const int* ends, Shared& shared)
      : decode_(decode), ends_(ends), results_(decode), queue_(shared) {}

  // Takes items `first`, `first` + `stride`, ... below `items`.
  __device__ inline void run(int first, int stride, int items) {
    if constexpr (kHasAsync) {
      run_through(first, stride, items);
    } else {  // with tiles in registers: reading into the next item costs registers
      for (int number = first; number < items; number += stride) run_through(number, 1, number + 1);
    }
  }

 private:
  __device__ inline void run_through(int first, int stride, int items) {
    DecodeTiles tiles(decode_, ends_, first, stride, items);
    for (int i = 0; i < Queue::kAhead; ++i) fetch(tiles);
    for (int number = first; number < items; number += stride) {
      const Item item = item_at(decode_, ends_, number);
      start();
      load_query(item);
#pragma unroll 1
      for (int at = item.begin; at < item.end; at += kTileTokens) {
        queue_.turn();
        fetch(tiles);
        queue_.arrive();
        consume(item, at);
      }
      finish(item);
    }
    queue_.drain();
  }

  __device__ inline void start() {
#pragma unroll
    for (int i = 0; i < kFrags; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) acc_[i][j] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < Mma::kLaneCols; ++i) {
      max_[i] = -INFINITY;
      sum_[i] = 0.0f;
    }
  }

  __device__ inline void load_query(const Item& item) {
    const AttentionArguments& attention = decode_.attention;
    const int head = Mma::row(lane_index());
    const int64_t at =
        (static_cast<int64_t>(item.row) * attention.n_heads + item.first_head + head) * kHeadDim;
    const int exponent = query_operand<Cache, kHeadDim, false>(attention.q, at, head < item.heads,
                                                               decode_.bf16, query_);
    const float scale = score_scale<Cache>(attention, item.kv_head);
#pragma unroll
    for (int i = 0; i < Mma::kLaneCols; ++i) {
      const int col = Mma::acc_col(lane_index(), i);
      factor_[i] = scale * power_of_two(warp_from(exponent, Mma::lane_of_col(col)));
    }
  }

  __device__ inline void fetch(DecodeTiles& tiles) {
    tiles.next();
    const PagedKv& kv = decode_.attention.kv;
    const int lane = lane_index();
    const int64_t at = tiles.row() * kRowBytes;
    // Apart from the lane's own corner of the tile, everything is a constant.
    const unsigned char* keys = static_cast<const unsigned char*>(kv.k) + at +
                                Mma::row(lane) * kRowBytes + Keys::offset(0, Mma::group(lane));
    const unsigned char* values = static_cast<const unsigned char*>(kv.v) + at +
                                  Mma::depth(lane, 0) * kRowBytes +
                                  Values::offset(0, Mma::row(lane));
#pragma unroll
    for (int row = 0; row < Mma::kRowsPerLane; ++row) {
      const bool valid = Mma::row(lane) + 8 * row < tiles.tokens();
#pragma unroll
      for (int piece = 0; piece < Keys::kPieces; ++piece) {
        queue_.fetch_key(row, piece, keys + 8 * row * kRowBytes + Keys::offset(piece, 0), valid);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool valid = Mma::depth(lane, i) < tiles.tokens();
      const int below = Mma::depth(0, i) * kRowBytes;
#pragma unroll
      for (int piece = 0; piece < Values::kPieces; ++piece) {
        queue_.fetch_value(i, piece, values + below + Values::offset(piece, 0), valid);
      }
    }
    queue_.commit();
  }

  __device__ inline void consume(const Item& item, int first) {
    KeyWords<Keys> keys;
    queue_.take_keys(keys);
    float sums[kSums][4] = {};
#pragma unroll
    for (int step = 0; step < kFrags; ++step) {
      uint32_t a[2 * Mma::kRowsPerLane];
      key_operand<Cache, Keys::kWords>(keys.words, step, a);
      Mma::run<T>(sums[step % kSums], a, query_ + 2 * step);
    }
    float scores[4];
    const int lane = lane_index();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = first + Mma::acc_row(lane, i);
      const bool visible = token >= item.first_visible && token < item.end;
      float score =
          (kSums == 1 ? sums[0][i] : sums[0][i] + sums[kSums - 1][i]) * factor_[i % Mma::kLaneCols];
      if (decode_.cap.most != 0.0f) score = capped(decode_.cap, score);
      scores[i] = visible ? score : -INFINITY;
    }
    float correction[Mma::kLaneCols];
#pragma unroll
    for (int col = 0; col < Mma::kLaneCols; ++col) {
      float largest = max_[col];
#pragma unroll
      for (int i = col; i < 4; i += Mma::kLaneCols) largest = fmaxf(largest, scores[i]);
#pragma unroll
      for (int mask = Mma::kColStride; mask < kWarp; mask *= 2) {
        largest = fmaxf(largest, warp_xor(largest, mask));
      }
      correction[col] = exp2_fast(max_[col] - largest);
      max_[col] = largest;
      sum_[col] *= correction[col];
#pragma unroll
      for (int i = col; i < 4; i += Mma::kLaneCols) {
        scores[i] = exp2_fast(scores[i] - (largest - kWeightExponent));
        sum_[col] += scores[i];
      }
    }
    const uint32_t packed[2] = {packed_pair<T>(scores[0], scores[1]),
                                packed_pair<T>(scores[2], scores[3])};
    uint32_t weights[2];
    Mma::scores_to_operand(packed, weights);
#pragma unroll
    for (int i = 0; i < kFrags; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) acc_[i][j] *= correction[j % Mma::kLaneCols];
    }
    ValueWords<Values> values;
    queue_.take_values(values);
    add_values<Cache, kHeadDim, Values::kWords, 1>(values.words, &weights, &acc_);
  }

  __device__ inline void finish(const Item& item) {
#pragma unroll
    for (int col = 0; col < Mma::kLaneCols; ++col) {
#pragma unroll
      for (int mask = Mma::kColStride; mask < kWarp; mask *= 2) {
        sum_[col] += warp_xor(sum_[col], mask);
      }
    }
    if (item.chunks > 1) return write_partial(item);
    add_sinks(item);
    write_output(item);
  }

  __device__ inline void add_sinks(const Item& item) {
    const ScoreOptions& scores = decode_.attention.scores;
    if (scores.sinks == nullptr) return;
#pragma unroll
    for (int col = 0; col < Mma::kLaneCols; ++col) {
      const int head = Mma::acc_col(lane_index(), col);
      if (head < item.heads) sum_[col] += sink_weight(scores, item.first_head + head, max_[col]);
    }
  }

  // Calls work(head, dim, numbers, col) for the lane's results: kRun adjacent dimensions of a head
  // at a time, from column `col` of its accumulators.
  template <typename Work>
  __device__ inline void each_run(const Item& item, const Work& work) const {
    constexpr int kRows = Mma::kRowsPerLane;
    constexpr int kCorners = 4 / kRows;  // accumulators that do not continue one another
#pragma unroll
    for (int corner = 0; corner < kCorners; ++corner) {
      const int head = Mma::acc_col(lane_index(), corner);
      if (head >= item.heads) continue;
#pragma unroll
      for (int element = 0; element < Values::kElements; element += kRun) {
        Vec<float, kRun> run;
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
          run.x[i] = acc_[(element + i) / kRows][corner + (element + i) % kRows * kCorners];
        }
        work(head, value_dim<Cache, kHeadDim>(element / kRows, corner + element % kRows * kCorners),
             run, corner % Mma::kLaneCols);
      }
    }
  }

  __device__ inline void write_output(const Item& item) {
    const float scale = output_scale<Cache>(decode_.attention, item.kv_head);
    each_run(item, [&](int head, int dim, const Vec<float, kRun>& run, int col) {
      results_.store(item, head, dim, run, sum_[col], scale);
    });
  }

  __device__ inline void write_partial(const Item& item) {
    const float scale = output_scale<Cache>(decode_.attention, item.kv_head);
    each_run(item, [&](int head, int dim, const Vec<float, kRun>& run, int) {
      results_.store_partial(item, head, dim, run, scale);
    });
#pragma unroll
    for (int col = 0; col < Mma::kLaneCols; ++col) {
      const int head = Mma::acc_col(lane_index(), col);
      if (head >= item.heads || Mma::acc_row(lane_index(), col) != 0) continue;
      results_.store_state(item, head, max_[col], sum_[col]);
    }
  }

  const Decode& decode_;
  const int* ends_;  // see count_chunks
  const DecodeResults<kHeadDim> results_;
  Queue queue_;
  uint32_t query_[2 * kFrags];
  float factor_[Mma::kLaneCols];
  float acc_[kFrags][4];
  float max_[Mma::kLaneCols];
  float sum_[Mma::kLaneCols];
};

// A fixed grid whose size depends on the device alone; its warps take items in turn.
template <typename Cache, int kHeadDim, bool kDeep>
__global__ void __launch_bounds__((Worker<Cache, kHeadDim, kDeep>::kThreads),
                                  (Worker<Cache, kHeadDim, kDeep>::kBlocks))
    attention_decode_kernel(Decode decode) {
  after_previous();
  constexpr int kWarps = Worker<Cache, kHeadDim, kDeep>::kWarps;
  Shared shared;
  int* ends = shared.take<int>(decode.attention.rows.n);
  Worker<Cache, kHeadDim, kDeep> worker(decode, ends, shared);
  count_chunks<kWarps>(decode, ends, shared.take<int>(kWarps));
  const int items = ends[decode.attention.rows.n - 1] * decode.groups;
  const int blocks = static_cast<int>(grid_size().x);
  // Adjacent items go to different blocks, so that a few items spread over the whole device.
  worker.run(warp_index() * blocks + static_cast<int>(block_index().x), blocks * kWarps, items);
}

// Adds up the partial results of rows that have several chunks. One warp takes one head of a row.
constexpr int kCombineThreads = 128;
__global__ void __launch_bounds__(kCombineThreads) attention_combine_kernel(Decode decode) {
  after_previous();
  constexpr int kWarps = kCombineThreads / kWarp;
  const int number = static_cast<int>(block_index().x) * kWarps + warp_index();
  const int n_heads = decode.attention.n_heads;
  if (number < decode.attention.rows.n * n_heads) {
    combine_chunks(decode, number / n_heads, number % n_heads);
  }
}

template <typename Cache, int kHeadDim, bool kDeep>
void run(Stream stream, const Decode& decode, int64_t most_items, int multiprocessors) {
  using Work = Worker<Cache, kHeadDim, kDeep>;
  constexpr size_t kWarpSumsBytes = 16;  // room for the sums of four warps
  static_assert(Work::Queue::kSharedBytes + 4 * kMaxRows + kWarpSumsBytes <= kMostSharedBytes);
  const int64_t resident = int64_t{multiprocessors} * Work::kBlocks;
  const int64_t needed = (most_items + Work::kWarps - 1) / Work::kWarps;
  const size_t ends_bytes = (static_cast<size_t>(decode.attention.rows.n) * 4 + 15) / 16 * 16;
  launch("attention", attention_decode_kernel<Cache, kHeadDim, kDeep>,
         {static_cast<unsigned>(needed < resident ? needed : resident)}, Work::kThreads,
         Work::Queue::kSharedBytes + ends_bytes + kWarpSumsBytes, stream, decode);
}

// FNUZ is the format of AMD's GPUs, which do not read ahead asynchronously.
template <typename Cache>
inline constexpr bool kHasDeep = kLoneWarps > 0 && !kIsFnuz<Cache>;

template <typename Cache, int kHeadDim>
void run(Stream stream, const Decode& decode, int multiprocessors) {
  const int64_t most_items = int64_t{decode.attention.rows.n} * decode.groups * decode.max_chunks;
  if constexpr (kHasDeep<Cache>) {
    if (most_items <= int64_t{multiprocessors} * kLoneWarps) {
      return run<Cache, kHeadDim, true>(stream, decode, most_items, multiprocessors);
    }
  }
  run<Cache, kHeadDim, false>(stream, decode, most_items, multiprocessors);
}

template <typename Cache>
void run_head_dim(Stream stream, const Decode& decode, int multiprocessors) {
  switch (decode.attention.kv.head_dim) {
    case 64:
      return run<Cache, 64>(stream, decode, multiprocessors);
    case 96:
      return run<Cache, 96>(stream, decode, multiprocessors);
    case 128:
      return run<Cache, 128>(stream, decode, multiprocessors);
    default:
      return run<Cache, 256>(stream, decode, multiprocessors);
  }
}

}  // namespace

bool takes_fast_attention(DType activations, const AttentionArguments& arguments) {
  const PagedKv& kv = arguments.kv;
  const ScoreOptions& scores = arguments.scores;
  if (scores.bias != nullptr || scores.chosen != nullptr) return false;
  if (scores.distance_states != nullptr) return false;
  return takes_operands(activations, arguments) && kv.page_size % kTileTokens == 0 &&
         kv.v_in_k == 0 && kv.v_dim() == kv.head_dim &&
         (kv.head_dim == 64 || kv.head_dim == 96 || kv.head_dim == 128 || kv.head_dim == 256);
}

bool takes_decode(const AttentionArguments& arguments, int64_t computed_as) {
  const Rows& rows = arguments.rows;
  const bool few = computed_as > 0 ? computed_as <= 2 : rows.n <= 2 * rows.n_seqs;
  return few && rows.n <= kMaxRows;
}

DecodeSizes decode_sizes(const AttentionArguments& arguments) {
  return sizes_of(decode_of(DType::f16, arguments, {}, Mma::kCols));
}

void attention_decode(Stream stream, DType activations, const AttentionArguments& arguments,
                      const DecodeScratch& scratch, int multiprocessors) {
  const Decode decode = decode_of(activations, arguments, scratch, Mma::kCols);
  with_elements(arguments.kv.k_format, [&]<typename Cache>(Cache) {
    if constexpr (sizeof(Cache) <= 2) run_head_dim<Cache>(stream, decode, multiprocessors);
  });
  combine(stream, decode);
}

void combine(Stream stream, const Decode& decode) {
  constexpr int64_t kWarps = kCombineThreads / kWarp;
  const int64_t heads = int64_t{decode.attention.rows.n} * decode.attention.n_heads;
  launch("attention", attention_combine_kernel,
         {static_cast<unsigned>((heads + kWarps - 1) / kWarps)}, kCombineThreads, 0, stream,
         decode);
}

}  // namespace fp8kv::FP8KV_GPU
