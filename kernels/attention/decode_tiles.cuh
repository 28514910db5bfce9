// The tiles that a warp of decode attention reads: those of all its items, one after the other.
// Reading runs ahead of computing, also from one item into the next. The number of each page is
// loaded one page ahead, since the address of a tile waits for it.
#pragma once

#include "kernels/attention/decode_items.cuh"

namespace fp8kv::FP8KV_GPU {

class DecodeTiles {
 public:
  // The tiles of items `first`, `first` + `stride`, ... below `items`. `ends`: see count_chunks.
  __device__ DecodeTiles(const Decode& decode, const int* ends, int first, int stride, int items)
      : decode_(decode), ends_(ends), number_(first - stride), stride_(stride), items_(items) {
    look_ahead();
  }

  // Moves to the next tile; after the last one, to tiles without tokens.
  __device__ inline void next() {
    row_ += kTileTokens;
    tokens_ -= kTileTokens;
    if (tokens_ > 0 || next_tokens_ == 0) return;
    row_ = decode_.attention.kv.row(next_page_, kv_head_, next_in_page_);
    tokens_ = next_tokens_;
    look_ahead();
  }

  // The number of the tile's first row in the cache.
  __device__ inline int64_t row() const { return row_; }
  // Tokens from the tile's first on that are the item's: below kTileTokens in an item's last tile,
  // and 0 or less after all items.
  __device__ inline int tokens() const { return tokens_; }

 private:
  // Finds the page that follows, and loads its number.
  __device__ inline void look_ahead() {
    next_tokens_ = 0;
    next_in_page_ = 0;
    if (left_ == 0 && !next_item()) return;
    const int most = decode_.attention.kv.page_size - next_in_page_;
    next_page_ = warp_uniform(*pages_++);
    next_tokens_ = left_ < most ? left_ : most;
    left_ -= next_tokens_;
  }

  __device__ inline bool next_item() {
    number_ += stride_;
    if (number_ >= items_) return false;
    const Item item = item_at(decode_, ends_, number_);
    const AttentionArguments& attention = decode_.attention;
    const int page_size = attention.kv.page_size;
    pages_ =
        attention.rows.page_table +
        int64_t{warp_uniform(sequence_of(attention.rows, item.row))} * attention.rows.max_pages +
        item.begin / page_size;
    next_in_page_ = item.begin % page_size;
    kv_head_ = item.kv_head;
    left_ = item.end - item.begin;
    return true;
  }

  const Decode& decode_;
  const int* ends_;
  int number_;  // the item of the page that follows
  int stride_;
  int items_;
  const int32_t* pages_ = nullptr;  // after the page that follows
  int left_ = 0;                    // tokens of the item after the page that follows
  int kv_head_ = 0;                 // of the page that follows
  int32_t next_page_ = 0;
  int next_in_page_ = 0;
  int next_tokens_ = 0;  // 0: no page follows
  int64_t row_ = 0;
  int tokens_ = 0;
};

}  // namespace fp8kv::FP8KV_GPU
