// Reads integers stored as differences, in blocks of packed bits.
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

  // Throws after the last number, and if the bytes end early.
  int64_t next();
  uint64_t left() const { return left_; }
  // The bytes after the numbers. Reads the remaining numbers, at most `most`.
  std::string_view behind(uint64_t most) const;

 private:
  void next_block();
  void next_part();

  std::string_view rest_;
  uint64_t block_ = 0;       // numbers in a block
  uint64_t parts_ = 1;       // parts of a block, each with one bit width
  uint64_t left_ = 0;        // numbers still to come
  bool first_ = true;        // the next number is in the head
  uint64_t value_ = 0;       // the last number
  uint64_t least_ = 0;       // the smallest difference of the block
  std::string_view widths_;  // bit widths of the block's later parts
  std::string_view packs_;   // packed bits of the part
  uint64_t part_left_ = 0;
  uint64_t bit_ = 0;
  unsigned width_ = 0;
};

}  // namespace fp8kv
