// Blocks of tokens that the rows of a test see: a choice for each row and KV head, or for each row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/numbers/tensor.h"

namespace fp8kv::test {

struct ChosenBlocks {
  int64_t count = 0;  // 0: every token is seen
  int64_t block = 1;
  bool pooled = false;  // all heads see the same; a row that ends a block may not see it

  // The blocks of the row at `position`, rising, with -1 behind them: its own and others, which
  // differ from head to head.   [count]
  std::vector<int32_t> of(int64_t position, int64_t kv_head) const {
    if (pooled) return of_row(position);
    const int64_t own = position / block;
    std::vector<int32_t> blocks;
    for (int64_t i = 0; i < std::min(own, count - 1); ++i) {
      const int64_t at = own + 1 <= count ? i : i * own / (count - 1);
      blocks.push_back(static_cast<int32_t>(kv_head % 2 == 0 ? at : own - 1 - at));
    }
    blocks.push_back(static_cast<int32_t>(own));
    std::sort(blocks.begin(), blocks.end());
    blocks.resize(static_cast<size_t>(count), -1);
    return blocks;
  }

  bool has(int64_t position, int64_t kv_head, int64_t token) const {
    if (count == 0) return true;
    const std::vector<int32_t> blocks = of(position, kv_head);
    return std::find(blocks.begin(), blocks.end(), token / block) != blocks.end();
  }

  // The lists of all rows.   [rows, n_kv_heads, count], or [rows, count]
  std::vector<int32_t> all(const std::vector<int32_t>& positions, int64_t n_kv_heads) const {
    std::vector<int32_t> lists;
    for (const int32_t position : positions) {
      for (int64_t head = 0; head < (pooled ? 1 : n_kv_heads); ++head) {
        const std::vector<int32_t> own = of(position, head);
        lists.insert(lists.end(), own.begin(), own.end());
      }
    }
    return lists;
  }
  Shape shape(int64_t rows, int64_t n_kv_heads) const {
    return pooled ? Shape{rows, count} : Shape{rows, n_kv_heads, count};
  }

 private:
  // The first whole blocks and every other later one, then the block that the row is in.
  std::vector<int32_t> of_row(int64_t position) const {
    const int64_t whole = (position + 1) / block, most = count - 1;
    std::vector<int32_t> blocks;
    for (int64_t i = 0; i < std::min(whole, most); ++i) {
      const bool spread = whole >= 2 * most;
      blocks.push_back(static_cast<int32_t>(spread ? 2 * i : i));
    }
    if ((position + 1) % block > 0) blocks.push_back(static_cast<int32_t>(whole));
    blocks.resize(static_cast<size_t>(count), -1);
    return blocks;
  }
};

}  // namespace fp8kv::test
