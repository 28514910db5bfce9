#include "base/error.h"
#include "unpack/block.h"

namespace fp8kv {
namespace {

constexpr size_t kMostFromAByte = 64;  // a copy of 64 bytes takes at least 2; the length is beside

[[noreturn]] void fail_snappy() {
  fail("Snappy data is damaged");
}

class SnappyReader {
 public:
  explicit SnappyReader(std::string_view packed) : rest_(packed) {}

  bool at_end() const { return rest_.empty(); }

  // Least significant byte first.
  size_t number(size_t bytes) {
    if (rest_.size() < bytes) fail_snappy();
    size_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(bytes);
    return value;
  }

  size_t varint() {
    size_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const size_t byte = number(1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail_snappy();
  }

  std::string_view bytes(size_t count) {
    if (rest_.size() < count) fail_snappy();
    const std::string_view found = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return found;
  }

 private:
  std::string_view rest_;
};

void copy(std::string& out, size_t offset, size_t length, size_t size) {
  if (offset == 0 || offset > out.size() || length > size - out.size()) fail_snappy();
  // Byte by byte: a copy may take what it has just written.
  for (size_t from = out.size() - offset; length > 0; --length) out += out[from++];
}

}  // namespace

std::string unpack_snappy(std::string_view packed, size_t size) {
  SnappyReader in(packed);
  if (const size_t says = in.varint(); says != size) {
    fail("Snappy data says ", says, " bytes, expected ", size);
  }
  if (size / kMostFromAByte > packed.size()) fail_snappy();
  std::string out;
  out.reserve(size);
  while (!in.at_end()) {
    const size_t tag = in.number(1);
    size_t length = (tag >> 2) + 1;
    if ((tag & 3) == 0) {
      if (length > 60) length = in.number(length - 60) + 1;
      if (length > size - out.size()) fail_snappy();
      out += in.bytes(length);
    } else if ((tag & 3) == 1) {
      length = ((tag >> 2) & 7) + 4;
      const size_t offset = (tag >> 5) << 8 | in.number(1);
      copy(out, offset, length, size);
    } else {
      const size_t offset = in.number((tag & 3) == 2 ? 2 : 4);
      copy(out, offset, length, size);
    }
  }
  if (out.size() != size) fail_snappy();
  return out;
}

}  // namespace fp8kv
