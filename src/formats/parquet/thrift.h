// Reads Thrift's compact protocol, as far as Parquet's metadata needs it. Structs are read field by
// field, and unknown fields are skipped.
// Source: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace fp8kv {

class ThriftReader {
 public:
  enum Type : uint8_t {
    yes = 1,
    no = 2,
    byte = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    object = 12
  };

  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }

  // Calls `take` for every field of a struct. `take` either reads the field and returns true, or
  // reads nothing and returns false. Like all functions below, throws if the bytes end early.
  void read_struct(const std::function<bool(int id, Type type)>& take);

  // Each reads a field of its own type and returns true. For any other type it reads nothing and
  // returns false.
  bool read(Type type, int64_t& into);
  bool read(Type type, bool& into) const;
  bool read(Type type, std::string_view& into);
  // Calls `element` for each element of a list, with the type of the elements.
  bool read_list(Type type, const std::function<void(Type element)>& element);
  void skip(Type type);

 private:
  uint8_t next_byte();
  uint64_t varint();
  int64_t zigzag();
  struct Deeper;

  std::string_view bytes_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace fp8kv
