// Reads small numbers of a fixed width, stored as runs or packed bits: levels, and indices into a
// dictionary.
// Source: github.com/apache/parquet-format, Encodings.md, "RLE/Bit-Packing Hybrid".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fp8kv {

class RunReader {
 public:
  RunReader() = default;
  // Throws for a width of more than 32 bits.
  RunReader(std::string_view bytes, unsigned width);

  // Throws if the bytes end early.
  uint32_t next();

 private:
  void next_run();

  std::string_view rest_;
  unsigned width_ = 0;
  uint64_t left_ = 0;  // numbers left in the run
  bool packed_ = false;
  uint32_t value_ = 0;      // of a run of one value
  std::string_view packs_;  // of a packed run
  uint64_t bit_ = 0;        // position in `packs_`
};

// The number of `width` bits (at most 64) that starts at a bit of `bytes`, least significant bit
// first. Bits past the end are 0.
uint64_t bits_at(std::string_view bytes, uint64_t bit, unsigned width);

// Reads a number of at most 64 bits, with seven bits in each byte. Throws if the bytes end early.
uint64_t take_varint(std::string_view& bytes);

}  // namespace fp8kv
