// The safetensors format. Accepts and refuses the same files as the reference implementation.
//
//   u64 little-endian N | N bytes of JSON header | data
//   header: {"__metadata__"?: {string: string}, name: {"dtype", "shape", "data_offsets": [b, e]}}
//   Offsets are relative to the data. Sorted by offset, the tensors cover the data exactly: no
//   holes, no overlap, no trailing bytes. N <= 100,000,000. Shape [] is a scalar. Sizes of 0 are
//   allowed. Alignment is not checked.
//
// Three things are stricter than in the reference. Duplicate names, more than 8 dimensions, and
// dimensions or offsets past 2^63 are refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/numbers/tensor.h"
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

// The contents of a header.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  bool has_metadata = false;
  std::vector<TensorEntry> tensors;  // in order of offset
};

// Parses and validates a header; no other function does. `head` has the first bytes of the file,
// including the whole header if the file is long enough. `file_size` is the size of the whole file.
// Throws an Error that names the tensor at fault, if there is one. Messages start with `source` as
// given, like those of Json::parse.
SafetensorsHeader parse_safetensors(std::string_view head, uint64_t file_size,
                                    const std::string& source);

// Reads and validates the header alone, with at most two reads and no mapping.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);
SafetensorsHeader read_safetensors_header(const InputFile& file, const std::filesystem::path& path);

// A tensor for safetensors_bytes.
struct TensorToWrite {
  std::string name;
  ConstTensorView tensor;  // the dtype must have whole bytes
};

// The bytes of a whole file, identical to those of the reference. `__metadata__` comes first unless
// empty. Tensors are ordered by DType from last (widest) to first, then by name. Spaces pad the
// header so that the data is 8-aligned. transformers needs the metadata {"format": "pt"} to load a
// file. REQUIRES distinct names.
std::string safetensors_bytes(std::vector<TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata);

// The part of a file before its data, for adjacent tensors in this order. Only the distance of
// `begin` and `end` matters. The header is padded as in safetensors_bytes.
std::string safetensors_head(const std::vector<TensorEntry>& tensors,
                             const std::map<std::string, std::string>& metadata);

}  // namespace fp8kv
