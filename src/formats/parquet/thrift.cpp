#include "formats/parquet/thrift.h"

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr int kDeepest = 32;
constexpr size_t kRealBytes = 8;

}  // namespace

struct ThriftReader::Deeper {
  explicit Deeper(int& at) : depth(at) {
    if (++depth > kDeepest) fail("the metadata is nested more than ", kDeepest, " deep");
  }
  ~Deeper() { --depth; }
  int& depth;
};

uint8_t ThriftReader::next_byte() {
  if (position_ >= bytes_.size()) fail("the metadata ends too early");
  return static_cast<uint8_t>(bytes_[position_++]);
}

uint64_t ThriftReader::varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint64_t next = next_byte();
    value |= (next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  fail("a number in the metadata has more than 64 bits");
}

int64_t ThriftReader::zigzag() {
  const uint64_t value = varint();
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

void ThriftReader::read_struct(const std::function<bool(int id, Type type)>& take) {
  const Deeper deeper(depth_);
  int id = 0;
  for (uint8_t head = next_byte(); head != 0; head = next_byte()) {
    const int step = head >> 4;
    const int64_t found = step > 0 ? id + step : zigzag();
    if (found < 0 || found > 32767) fail("the metadata has a field of number ", found);
    id = static_cast<int>(found);
    const auto type = static_cast<Type>(head & 15);
    if (!take(id, type)) skip(type);
  }
}

bool ThriftReader::read(Type type, int64_t& into) {
  if (type == byte) {
    into = static_cast<int8_t>(next_byte());
    return true;
  }
  if (type < i16 || type > i64) return false;
  into = zigzag();
  return true;
}

bool ThriftReader::read(Type type, bool& into) const {
  if (type != yes && type != no) return false;
  into = type == yes;
  return true;
}

bool ThriftReader::read(Type type, std::string_view& into) {
  if (type != binary) return false;
  const uint64_t length = varint();
  if (length > bytes_.size() - position_) fail("the metadata ends too early");
  into = bytes_.substr(position_, length);
  position_ += length;
  return true;
}

bool ThriftReader::read_list(Type type, const std::function<void(Type element)>& element) {
  if (type != list && type != set) return false;
  const Deeper deeper(depth_);
  const uint8_t head = next_byte();
  const auto of = static_cast<Type>(head & 15);
  const uint64_t size = head >> 4 == 15 ? varint() : head >> 4;
  // Every element takes at least one byte.
  if (size > bytes_.size() - position_) fail("the metadata ends too early");
  for (uint64_t i = 0; i < size; ++i) element(of);
  return true;
}

void ThriftReader::skip(Type type) {
  const Deeper deeper(depth_);
  int64_t number = 0;
  std::string_view text;
  // Booleans in a list take a byte each.
  const auto skip_element = [this](Type of) {
    of == yes || of == no ? void(next_byte()) : skip(of);
  };
  if (type == yes || type == no || read(type, number) || read(type, text)) return;
  if (read_list(type, skip_element)) return;
  if (type == real) {
    for (size_t i = 0; i < kRealBytes; ++i) next_byte();
  } else if (type == object) {
    read_struct([](int, Type) { return false; });
  } else if (type == map) {
    const uint64_t size = varint();
    if (size == 0) return;
    if (size > bytes_.size() - position_) fail("the metadata ends too early");
    const uint8_t types = next_byte();
    for (uint64_t i = 0; i < size; ++i) {
      skip_element(static_cast<Type>(types >> 4));
      skip_element(static_cast<Type>(types & 15));
    }
  } else {
    fail("the metadata has a value of type ", int{type});
  }
}

}  // namespace fp8kv
