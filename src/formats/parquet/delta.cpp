#include "formats/parquet/delta.h"

#include "base/error.h"
#include "formats/parquet/levels.h"

namespace fp8kv {
namespace {

constexpr uint64_t kLargestBlock = 1 << 20;

uint64_t zigzag(uint64_t value) {
  return (value >> 1) ^ (0 - (value & 1));
}

}  // namespace

DeltaReader::DeltaReader(std::string_view bytes) : rest_(bytes) {
  block_ = take_varint(rest_);
  parts_ = take_varint(rest_);
  left_ = take_varint(rest_);
  value_ = zigzag(take_varint(rest_));
  if (parts_ == 0 || block_ == 0 || block_ > kLargestBlock || block_ % parts_ != 0 ||
      block_ / parts_ % 8 != 0) {
    fail("a page has delta blocks of ", block_, " numbers in ", parts_, " parts");
  }
}

void DeltaReader::next_block() {
  least_ = zigzag(take_varint(rest_));
  if (rest_.size() < parts_) fail("a page ends too early");
  widths_ = rest_.substr(0, parts_);
  rest_.remove_prefix(parts_);
}

void DeltaReader::next_part() {
  if (widths_.empty()) next_block();
  width_ = static_cast<unsigned char>(widths_[0]);
  widths_.remove_prefix(1);
  part_left_ = block_ / parts_;
  const size_t bytes = part_left_ / 8 * width_;
  if (width_ > 64 || bytes > rest_.size()) fail("a page ends too early");
  packs_ = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  bit_ = 0;
}

int64_t DeltaReader::next() {
  if (left_ == 0) fail("a page has fewer values than it says");
  --left_;
  if (first_) {
    first_ = false;
    return static_cast<int64_t>(value_);
  }
  if (part_left_ == 0) next_part();
  --part_left_;
  value_ += least_ + bits_at(packs_, bit_, width_);
  bit_ += width_;
  return static_cast<int64_t>(value_);
}

std::string_view DeltaReader::behind(uint64_t most) const {
  if (left_ > most) fail("a page has ", left_, " values, expected at most ", most);
  DeltaReader copy = *this;
  while (copy.left_ > 0) copy.next();
  return copy.rest_;
}

}  // namespace fp8kv
