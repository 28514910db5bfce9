// The safetensors format, with the verdicts of the reference implementation.
//
//   u64 little-endian N | N bytes of JSON header | data
//   header: {"__metadata__"?: {string: string}, name: {"dtype", "shape", "data_offsets": [b, e]}}
//   offsets are relative to the data; sorted by offset the tensors cover the data exactly: no
//   holes, no overlap, no trailing bytes. N <= 100,000,000. Shape [] is a scalar; sizes of 0 are
//   allowed; alignment is not checked.
//
// Stricter than the reference in three points: a name that is there twice, more than 8 dimensions,
// and a dimension or offset past 2^63 are refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "files/file.h"

namespace fp8kv {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

// A tensor's entry in a header.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0;  // offset in the file, not in the data
  uint64_t end = 0;
};

// Everything a header says.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  bool has_metadata = false;
  std::vector<TensorEntry> tensors;  // in order of offset
};

// The one function that validates. `head` is the file's first bytes, at least the whole header when
// the file is that long; `file_size` the size of the whole file. Throws an Error that names the
// tensor where one is at fault. `source` starts the messages as it is, like Json::parse's.
SafetensorsHeader parse_safetensors(std::string_view head, uint64_t file_size,
                                    const std::string& source);

// Reads and validates the header alone: two reads at most, nothing mapped.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);
SafetensorsHeader read_safetensors_header(const InputFile& file, const std::filesystem::path& path);

// What safetensors_bytes writes.
struct TensorToWrite {
  std::string name;
  ConstTensorView tensor;  // of a dtype of whole bytes
};

// The bytes of a whole file, the same that the reference writes: `__metadata__` first unless empty,
// tensors in the order of DType from the last (the widest) to the first and then by name, the
// header padded with spaces so that data starts 8-aligned. REQUIRES distinct names.
// Metadata {"format": "pt"} is what transformers needs to load it.
std::string safetensors_bytes(std::vector<TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata);

// The part of a file before its data, for tensors in this order, one behind the other; `begin` and
// `end` are only read for their distance. Padded as above.
std::string safetensors_head(const std::vector<TensorEntry>& tensors,
                             const std::map<std::string, std::string>& metadata);

}  // namespace fp8kv
