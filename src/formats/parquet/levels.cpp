#include "formats/parquet/levels.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {

uint64_t bits_at(std::string_view bytes, uint64_t bit, unsigned width) {
  uint64_t value = 0;
  for (unsigned got = 0; got < width;) {
    const size_t at = (bit + got) / 8;
    const unsigned within = (bit + got) % 8;
    const uint64_t byte = at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
    value |= (byte >> within) << got;
    got += 8 - within;
  }
  return width < 64 ? value & ((uint64_t(1) << width) - 1) : value;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) fail("a page ends too early");
    const uint64_t next = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= (next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  fail("a number in a page has more than 64 bits");
}

RunReader::RunReader(std::string_view bytes, unsigned width) : rest_(bytes), width_(width) {
  if (width > 32) fail("a page has numbers of ", width, " bits, expected at most 32");
}

void RunReader::next_run() {
  const uint64_t head = take_varint(rest_);
  packed_ = head & 1;
  if (!packed_) {
    const size_t bytes = (width_ + 7) / 8;
    if (rest_.size() < bytes) fail("a page ends too early");
    left_ = head >> 1;
    value_ = static_cast<uint32_t>(bits_at(rest_.substr(0, bytes), 0, width_));
    rest_.remove_prefix(bytes);
    return;
  }
  const uint64_t groups = head >> 1;  // groups of eight numbers, `width` bytes each
  // Some writers omit the end of the last group.
  const uint64_t bytes = groups > rest_.size() ? rest_.size() + 8 : groups * width_;
  packs_ = rest_.substr(0, std::min<uint64_t>(bytes, rest_.size()));
  left_ = width_ == 0 ? groups * 8 : std::min<uint64_t>(groups * 8, packs_.size() * 8 / width_);
  bit_ = 0;
  rest_.remove_prefix(packs_.size());
}

uint32_t RunReader::next() {
  while (left_ == 0) next_run();
  --left_;
  if (!packed_) return value_;
  const auto value = static_cast<uint32_t>(bits_at(packs_, bit_, width_));
  bit_ += width_;
  return value;
}

}  // namespace fp8kv
