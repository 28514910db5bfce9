// The safetensors format, with the verdicts of the reference implementation.
//
//   u64 little-endian N | N bytes of JSON header | data
//   header: {"__metadata__"?: {string: string}, name: {"dtype", "shape", "data_offsets": [b, e]}}
//   offsets are relative to the data; sorted by offset the tensors cover the data exactly: no
//   holes, no overlap, no trailing bytes. N <= 100,000,000. Shape [] is a scalar; sizes of 0 are
//   allowed; alignment is not checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace fp8kv {

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
// tensor where one is at fault. `source` is named in messages.
SafetensorsHeader parse_safetensors(std::string_view head, uint64_t file_size,
                                    const std::string& source);

// Reads and validates the header alone: two reads, nothing mapped.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);

// What write_safetensors writes. Tensors are sorted as the reference does (dtype size descending,
// then name); the header is padded so that data starts 8-aligned.
struct TensorToWrite {
  std::string name;
  ConstTensorView tensor;
};

// The bytes of a whole file. Metadata {"format": "pt"} is what transformers needs to load it.
std::string safetensors_bytes(std::vector<TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace fp8kv
