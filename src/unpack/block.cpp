#include "unpack/block.h"

#include <algorithm>

#include "base/error.h"
#include "unpack/unpacker.h"

namespace fp8kv {
namespace {

constexpr size_t kAtOnce = size_t(1) << 20;

std::string unpack_stream(Packing packing, std::string_view packed, size_t size) {
  Unpacker unpacker(packing, packed);
  std::string out;
  // One byte more than expected shows what goes on behind.
  while (out.size() <= size && unpacker.more(out, std::min(size + 1 - out.size(), kAtOnce))) {
    continue;
  }
  if (out.size() == size) return out;
  fail("unpacks to ", out.size() > size ? "more" : "less", " than the ", size,
       " bytes that it says");
}

}  // namespace

std::string unpack_block(BlockPacking packing, std::string_view packed, size_t size) {
  switch (packing) {
    case BlockPacking::snappy:
      return unpack_snappy(packed, size);
    case BlockPacking::gzip:
      return unpack_stream(Packing::gzip, packed, size);
    case BlockPacking::zstd:
      return unpack_stream(Packing::zstd, packed, size);
    case BlockPacking::none:
      break;
  }
  if (packed.size() != size) {
    fail("has ", packed.size(), " bytes, expected the ", size, " that it says");
  }
  return std::string(packed);
}

}  // namespace fp8kv
