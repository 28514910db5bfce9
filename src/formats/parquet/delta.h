// Integers as differences, in blocks of packed bits.
// Source: github.com/apache/parquet-format, Encodings.md, "Delta Encoding".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fp8kv {

class DeltaReader {
 public:
  DeltaReader() = default;
  explicit DeltaReader(std::string_view bytes);

  // Throws behind the last one, and where the bytes end.
  int64_t next();
  uint64_t left() const { return left_; }
  // What is behind the numbers. Reads those that are left, at most `most`.
  std::string_view behind(uint64_t most) const;

 private:
  void next_block();
  void next_part();

  std::string_view rest_;
  uint64_t block_ = 0;       // numbers in a block
  uint64_t parts_ = 1;       // of a block, each of one width
  uint64_t left_ = 0;        // numbers to come
  bool first_ = true;        // the next one is in the head
  uint64_t value_ = 0;       // the last one
  uint64_t least_ = 0;       // difference of the block
  std::string_view widths_;  // of the parts of the block to come
  std::string_view packs_;   // of the part
  uint64_t part_left_ = 0;
  uint64_t bit_ = 0;
  unsigned width_ = 0;
};

}  // namespace fp8kv
