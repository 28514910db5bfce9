#include "kernels/ptx/fat_binary.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace fp8kv::ptx {
namespace {

// NVIDIA documents neither struct. fatbinary.h of CUDA before 12 has the first; the second was
// found by reading the output of nvcc 13.0.
struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // of all entries together
};
struct Entry {
  uint16_t kind;  // 1 for PTX, 2 for machine code
  uint16_t version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes;
  uint32_t options;
  uint16_t minor;
  uint16_t major;
  uint32_t target;
};
constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint16_t kPtx = 1;

}  // namespace

std::vector<PtxText> ptx_texts(const void* container) {
  const auto* at = static_cast<const char*>(container);
  Header header;
  std::memcpy(&header, at, sizeof header);
  if (header.magic != kMagic) fail("a fat binary begins with ", header.magic, ", not ", kMagic);
  at += header.header_bytes;
  std::vector<PtxText> texts;
  for (const char* end = at + header.bytes; at < end;) {
    Entry entry;
    std::memcpy(&entry, at, sizeof entry);
    at += entry.header_bytes;
    if (entry.kind == kPtx) {
      const std::string_view text(at, strnlen(at, entry.bytes));
      if (text.find(".version") == text.npos) fail("the PTX is compressed, expected --no-compress");
      texts.push_back({static_cast<int>(entry.target), text});
    }
    at += entry.bytes;
  }
  return texts;
}

}  // namespace fp8kv::ptx
