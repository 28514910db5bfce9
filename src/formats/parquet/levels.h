// Small numbers of a fixed width, as runs and packed in bits: levels, indices of a dictionary.
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

  // Throws where the bytes end.
  uint32_t next();

 private:
  void next_run();

  std::string_view rest_;
  unsigned width_ = 0;
  uint64_t left_ = 0;  // of the run
  bool packed_ = false;
  uint32_t value_ = 0;      // of a run of one value
  std::string_view packs_;  // of a packed run
  uint64_t bit_ = 0;        // in it
};

// A number of at most 64 bits at a bit of `bytes`, least significant bit first. Bits behind the end
// are 0.
uint64_t bits_at(std::string_view bytes, uint64_t bit, unsigned width);

// At most 64 bits, seven in a byte. Throws where the bytes end.
uint64_t take_varint(std::string_view& bytes);

}  // namespace fp8kv
