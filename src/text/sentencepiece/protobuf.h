// Reads the fields of a protobuf message one by one, without a schema.
// Source: https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fp8kv {

class ProtobufReader {
 public:
  // `where` names the message in errors. REQUIRES `bytes` to outlive this object and its views.
  ProtobufReader(std::string_view bytes, std::string where)
      : bytes_(bytes), where_(std::move(where)) {}

  // Moves to the next field; returns false at the end. Throws for an invalid message.
  bool next();
  uint32_t field() const { return field_; }

  // Return the field's value; `name` is for messages. Each throws if the field has another type.
  int64_t as_int(std::string_view name) const;
  bool as_bool(std::string_view name) const { return as_int(name) != 0; }
  float as_float(std::string_view name) const;
  std::string_view as_bytes(std::string_view name) const;

 private:
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  uint64_t take_varint();
  std::string_view take(uint64_t size);
  void expect(Wire wire, std::string_view name) const;

  std::string_view bytes_;  // the rest of the message
  std::string where_;
  uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  uint64_t number_ = 0;     // varint
  std::string_view value_;  // of the other wire types
};

}  // namespace fp8kv
