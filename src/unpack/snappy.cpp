#include <snappy-c.h>

#include "base/error.h"
#include "unpack/block.h"

namespace fp8kv {
namespace {

constexpr size_t kMostFromAByte = 64;  // a copy of 64 bytes takes at least 2; the length is beside

[[noreturn]] void fail_snappy() {
  fail("Snappy data is damaged");
}

}  // namespace

std::string unpack_snappy(std::string_view packed, size_t size) {
  size_t unpacked = 0;
  if (snappy_uncompressed_length(packed.data(), packed.size(), &unpacked) != SNAPPY_OK) {
    fail_snappy();
  }
  if (unpacked != size) fail("Snappy data says ", unpacked, " bytes, expected ", size);
  if (size / kMostFromAByte > packed.size()) fail_snappy();
  std::string out(size, '\0');
  if (snappy_uncompress(packed.data(), packed.size(), out.data(), &unpacked) != SNAPPY_OK) {
    fail_snappy();
  }
  return out;
}

}  // namespace fp8kv
