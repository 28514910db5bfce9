#include "text/sentencepiece/protobuf.h"

#include <bit>

#include "base/error.h"

namespace fp8kv {

uint64_t ProtobufReader::take_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  fail(where_, ": is no protobuf message: a number has more than 10 bytes");
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > bytes_.size()) {
    fail(where_, ": is no protobuf message, or not all of it: it ends inside field ", field_);
  }
  const std::string_view taken = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return taken;
}

bool ProtobufReader::next() {
  if (bytes_.empty()) return false;
  const uint64_t tag = take_varint();
  const uint64_t field = tag >> 3;
  if (field == 0 || field >= (1u << 29)) {
    fail(where_, ": is no protobuf message: it has a field of the number ", field);
  }
  field_ = static_cast<uint32_t>(field);
  switch (tag & 7) {
    case 0:
      wire_ = Wire::varint;
      number_ = take_varint();
      return true;
    case 1:
      wire_ = Wire::fixed64;
      value_ = take(8);
      return true;
    case 2:
      wire_ = Wire::bytes;
      value_ = take(take_varint());
      return true;
    case 5:
      wire_ = Wire::fixed32;
      value_ = take(4);
      return true;
    default:
      fail(where_, ": is no protobuf message: field ", field, " is of the type ", tag & 7);
  }
}

void ProtobufReader::expect(Wire wire, std::string_view name) const {
  if (wire_ == wire) return;
  fail(where_, ".", name, ": is of the protobuf type ", static_cast<int>(wire_), ", expected ",
       static_cast<int>(wire));
}

int64_t ProtobufReader::as_int(std::string_view name) const {
  expect(Wire::varint, name);
  return static_cast<int64_t>(number_);
}

float ProtobufReader::as_float(std::string_view name) const {
  expect(Wire::fixed32, name);
  uint32_t bits = 0;
  for (size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(value_[i]);
  return std::bit_cast<float>(bits);
}

std::string_view ProtobufReader::as_bytes(std::string_view name) const {
  expect(Wire::bytes, name);
  return value_;
}

}  // namespace fp8kv
