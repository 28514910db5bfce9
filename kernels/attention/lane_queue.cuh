// Reads memory ahead: a lane asks for pieces of later tiles and gets them back in order, tile by
// tile. No other lane touches them, so no barrier is needed. With asynchronous copies, the pieces
// wait in the lane's own slots in shared memory, up to kAhead tiles. On other devices they wait in
// registers, one tile.
//
//   for tile < kAhead: fetch pieces; commit()
//   for each tile: turn(); fetch the pieces of tile + kAhead; commit(); arrive(); take keys, values
#pragma once

#include <type_traits>

#include "kernels/blocks/vec.cuh"

namespace fp8kv::FP8KV_GPU {

template <int kBytes>
struct alignas(kBytes < 4 ? 4 : kBytes) PieceWords {
  uint32_t words[kBytes < 4 ? 1 : kBytes / 4];
};

// A lane's words of a tile: its pieces (see KeyPieces, ValuePieces) of kRows rows of keys and of 4
// rows of values.
template <typename Keys>
struct KeyWords {
  static constexpr int kRows = Mma::kRowsPerLane;
  uint32_t words[kRows][Keys::kWords];
};
template <typename Values>
struct ValueWords {
  uint32_t words[4][Values::kWords];
};
template <typename Keys, typename Values>
inline constexpr int kLaneBytes = Mma::kRowsPerLane* Keys::kBytes + 4 * Values::kBytes;

template <typename Keys, typename Values, int kThreads, int kStages>
class SharedQueue {
 public:
  static constexpr int kAhead = kStages - 1;
  static constexpr int kStageBytes = kLaneBytes<Keys, Values> * kThreads;
  static constexpr size_t kSharedBytes = size_t{kStages} * kStageBytes;

  __device__ explicit SharedQueue(Shared& shared)
      : ring_(shared.take<unsigned char>(kSharedBytes)) {}

  __device__ inline void turn() {}
  __device__ inline void fetch_key(int row, int piece, const void* from, bool valid) {
    copy_async<Keys::kPieceBytes, true>(key_slot(to_, row, piece), from, valid);
  }
  __device__ inline void fetch_value(int token, int piece, const void* from, bool valid) {
    copy_async<Values::kPieceBytes, true>(value_slot(to_, token, piece), from, valid);
  }
  __device__ inline void commit() {
    async_commit();
    to_ = next(to_);
  }
  __device__ inline void arrive() {
    async_wait<kAhead>();
    at_ = next(at_);
  }
  __device__ inline void take_keys(KeyWords<Keys>& keys) const {
#pragma unroll
    for (int row = 0; row < Mma::kRowsPerLane; ++row) {
#pragma unroll
      for (int piece = 0; piece < Keys::kPieces; ++piece) {
        copy_words<Keys::kPieceBytes>(keys.words[row], piece, key_slot(at_, row, piece));
      }
    }
  }
  __device__ inline void take_values(ValueWords<Values>& values) const {
#pragma unroll
    for (int token = 0; token < 4; ++token) {
#pragma unroll
      for (int piece = 0; piece < Values::kPieces; ++piece) {
        copy_words<Values::kPieceBytes>(values.words[token], piece, value_slot(at_, token, piece));
      }
    }
  }
  // Waits for all copies: none may be in flight when the lane's work ends.
  __device__ inline void drain() {
    async_wait<0>();
  }

 private:
  static __device__ inline int next(int stage) {
    return stage + 1 == kStages ? 0 : stage + 1;
  }
  // Neighbouring lanes have neighbouring slots, so that their accesses hit different banks.
  __device__ inline unsigned char* key_slot(int stage, int row, int piece) const {
    return ring_ + stage * kStageBytes +
           ((row * Keys::kPieces + piece) * kThreads + thread_index()) * Keys::kPieceBytes;
  }
  __device__ inline unsigned char* value_slot(int stage, int token, int piece) const {
    return ring_ + stage * kStageBytes + Mma::kRowsPerLane * Keys::kBytes * kThreads +
           ((token * Values::kPieces + piece) * kThreads + thread_index()) * Values::kPieceBytes;
  }
  template <int kBytes>
  static __device__ inline void copy_words(uint32_t* words, int piece, const unsigned char* from) {
    const auto part = *reinterpret_cast<const PieceWords<kBytes>*>(from);
#pragma unroll
    for (int i = 0; i < kBytes / 4; ++i) words[piece * (kBytes / 4) + i] = part.words[i];
  }

  unsigned char* ring_;
  int to_ = 0;            // the stage that is filled next
  int at_ = kStages - 1;  // the stage that arrived last
};

template <typename Keys, typename Values, int kThreads>
class RegisterQueue {
 public:
  static constexpr int kAhead = 1;
  static constexpr size_t kSharedBytes = 0;

  __device__ explicit RegisterQueue(Shared&) {}

  __device__ inline void turn() {
    due_keys_ = next_keys_;
    due_values_ = next_values_;
  }
  __device__ inline void fetch_key(int row, int piece, const void* from, bool valid) {
    load_words<Keys::kPieceBytes>(next_keys_.words[row], piece, from, valid);
  }
  __device__ inline void fetch_value(int token, int piece, const void* from, bool valid) {
    load_words<Values::kPieceBytes>(next_values_.words[token], piece, from, valid);
  }
  __device__ inline void commit() {}
  __device__ inline void arrive() {}
  __device__ inline void take_keys(KeyWords<Keys>& keys) const { keys = due_keys_; }
  __device__ inline void take_values(ValueWords<Values>& values) const { values = due_values_; }
  __device__ inline void drain() {}

 private:
  template <int kBytes>
  static __device__ inline void load_words(uint32_t* words, int piece, const void* from,
                                           bool valid) {
    if constexpr (kBytes == 2) {
      const uint32_t half = valid ? *static_cast<const uint16_t*>(from) : 0u;
      uint32_t& word = words[piece / 2];
      word = piece % 2 == 0 ? half : word | half << 16;
    } else {
      PieceWords<kBytes> part{};
      if (valid) part = *static_cast<const PieceWords<kBytes>*>(from);
#pragma unroll
      for (int i = 0; i < kBytes / 4; ++i) words[piece * (kBytes / 4) + i] = part.words[i];
    }
  }

  KeyWords<Keys> next_keys_{}, due_keys_{};
  ValueWords<Values> next_values_{}, due_values_{};
};

template <typename Keys, typename Values, int kThreads, int kStages>
using LaneQueue = std::conditional_t<kHasAsync, SharedQueue<Keys, Values, kThreads, kStages>,
                                     RegisterQueue<Keys, Values, kThreads>>;

}  // namespace fp8kv::FP8KV_GPU
