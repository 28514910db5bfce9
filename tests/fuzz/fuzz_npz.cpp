// AMMO's checkpoints: numpy's archives of arrays.
#include <zlib.h>

#include "formats/npz.h"
#include "fuzz.h"

namespace fp8kv::fuzz {
namespace {

void run(const std::string& input) {
  const auto reader = [&](uint64_t offset, uint64_t length) {
    require(offset <= input.size() && length <= input.size() - offset, "reads lie in the file");
    return input.substr(offset, length);
  };
  const Npz archive(input.size(), reader, "file");
  for (const std::string& name : archive.names()) {
    const NpyArray array = archive.read(name);
    require(array.bytes.size() <= kLargestNpzArray, "no array is larger than may be unpacked");
    require(array.bytes.size() ==
                static_cast<size_t>(array.shape.elements()) * dtype_bytes(array.dtype),
            "an array has the bytes of its shape");
  }
}

uint32_t number_at(const std::string& bytes, size_t at, int size) {
  uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
  }
  return value;
}

// Corrects the checksums of stored members in the local headers, and in the directory entries of
// the same name.
void repair(std::string& input) {
  constexpr size_t kLocalBytes = 30;
  for (size_t at = input.find("PK\3\4"); at != input.npos && at + kLocalBytes <= input.size();
       at = input.find("PK\3\4", at + 4)) {
    const size_t data =
        at + kLocalBytes + number_at(input, at + 26, 2) + number_at(input, at + 28, 2);
    const size_t size = number_at(input, at + 18, 4);
    if (number_at(input, at + 8, 2) != 0 || data > input.size() || size > input.size() - data) {
      continue;
    }
    const auto* bytes = reinterpret_cast<const Bytef*>(input.data() + data);
    const uLong crc = crc32(0, bytes, static_cast<uInt>(size));
    const std::string name = input.substr(at + kLocalBytes, number_at(input, at + 26, 2));
    for (size_t entry = input.find("PK\1\2"); entry != input.npos && entry + 46 <= input.size();
         entry = input.find("PK\1\2", entry + 4)) {
      if (name.empty() || input.compare(entry + 46, name.size(), name) != 0) continue;
      for (size_t i = 0; i < 4; ++i) input[entry + 16 + i] = static_cast<char>(crc >> (8 * i));
    }
    for (size_t i = 0; i < 4; ++i) input[at + 14 + i] = static_cast<char>(crc >> (8 * i));
  }
}

std::vector<std::string> seeds(const std::filesystem::path& root) {
  return files_below(root / "tests" / "golden", ".npz");
}

}  // namespace

const Target kNpz{"npz", run, repair, seeds};

}  // namespace fp8kv::fuzz
