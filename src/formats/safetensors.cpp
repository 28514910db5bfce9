#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "json/json.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little,
              "the data of the format is used in place");

constexpr uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

constexpr const char* kDownloadAgain =
    "the file is damaged or incomplete: download or copy it again";
constexpr const char* kNotSafetensors = "check that this is a .safetensors file";

uint64_t header_length(std::string_view head) {
  uint64_t length = 0;
  std::memcpy(&length, head.data(), kLengthBytes);
  return length;
}

// The JSON text of the header. Throws if the file is too short for it.
std::string_view header_text(std::string_view head, uint64_t file_size, const std::string& source) {
  refuse_lfs_pointer(head, source);
  if (file_size < kLengthBytes) {
    throw Error(cat(source, ": has ", count_of(file_size, "byte"),
                    ", expected at least 8 for the length of a safetensors header"),
                kDownloadAgain);
  }
  const uint64_t length = header_length(head);
  if (length > kMaxSafetensorsHeader) {
    throw Error(cat(source, ": is not a safetensors file: its first 8 bytes give a header of ",
                    grouped(length), " bytes, expected at most ", grouped(kMaxSafetensorsHeader)),
                kNotSafetensors);
  }
  if (kLengthBytes + length > file_size) {
    throw Error(cat(source, ": has ", grouped(file_size), " bytes, expected ",
                    grouped(kLengthBytes + length), " for its header alone"),
                kDownloadAgain);
  }
  FP8KV_ASSERT(head.size() >= kLengthBytes + length);
  const std::string_view text = head.substr(kLengthBytes, length);
  size_t bad_at = 0;
  if (!is_utf8(text, &bad_at)) {
    throw Error(cat(source, ": header: not valid UTF-8 at byte ", bad_at), kNotSafetensors);
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') {
    throw Error(cat(source, ": header: is not a JSON object"), kNotSafetensors);
  }
  return text;
}

// Accepts JSON integers only, like the reference: 4, but not 4.0 or -4.
uint64_t size_at(const Json& number) {
  const std::string& digits = number.number_text();
  const bool integer =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!integer) fail(number.where(), ": is ", number.brief(), ", expected a whole number");
  if (digits.size() > 18) fail(number.where(), ": is ", number.brief(), ", which is too large");
  return static_cast<uint64_t>(number.as_int());
}

DType parse_dtype(const Json& name, const std::string& tensor) {
  const auto dtype = dtype_from_name(name.as_string());
  if (!dtype) fail(tensor, ": the dtype ", quote(name.as_string()), " is not one of safetensors");
  return *dtype;
}

Shape parse_shape(const Json& dims, const std::string& tensor) {
  if (!dims.is_array()) fail(dims.where(), ": is ", dims.brief(), ", expected an array");
  if (dims.size() > Shape::kMaxRank) {
    fail(tensor, ": has ", dims.size(), " dimensions, at most ", Shape::kMaxRank, " are supported");
  }
  std::array<int64_t, Shape::kMaxRank> values{};
  for (size_t i = 0; i < dims.size(); ++i) values[i] = static_cast<int64_t>(size_at(dims[i]));
  return Shape(std::span(values.data(), dims.size()));
}

// The size in bytes of a tensor with this dtype and shape. Throws on overflow.
uint64_t checked_bytes(DType dtype, const Shape& shape, const std::string& tensor) {
  uint64_t bits = static_cast<uint64_t>(1);
  bool overflow = false;
  for (size_t i = 0; i < shape.rank(); ++i) {
    overflow |= __builtin_mul_overflow(bits, static_cast<uint64_t>(shape[i]), &bits);
  }
  overflow |= __builtin_mul_overflow(bits, static_cast<uint64_t>(dtype_bits(dtype)), &bits);
  if (overflow) {
    fail(tensor, ": ", dtype_name(dtype), " of shape ", shape.text(), " is larger than any file");
  }
  if (bits % 8 != 0) {
    fail(tensor, ": ", dtype_name(dtype), " of shape ", shape.text(), " does not fill whole bytes");
  }
  return bits / 8;
}

// Parses one entry. Its offsets are still relative to the data.
TensorEntry parse_entry(const std::string& name, const Json& json, const std::string& source) {
  const std::string tensor = cat(source, ": tensor ", quote(name));
  if (!json.is_object()) fail(tensor, ": is ", json.brief(), ", expected an object");
  TensorEntry entry;
  entry.name = name;
  entry.dtype = parse_dtype(json.at("dtype"), tensor);
  entry.shape = parse_shape(json.at("shape"), tensor);
  const Json offsets = json.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) {
    fail(offsets.where(), ": is ", offsets.brief(), ", expected an array of two numbers");
  }
  entry.begin = size_at(offsets[0]);
  entry.end = size_at(offsets[1]);
  return entry;
}

void parse_metadata(const Json& json, SafetensorsHeader& out) {
  if (json.is_null()) return;
  if (!json.is_object()) fail(json.where(), ": is ", json.brief(), ", expected an object");
  out.has_metadata = true;
  for (size_t i = 0; i < json.size(); ++i) {
    out.metadata.emplace(json.key(i), json.value(i).as_string());
  }
}

// Checks that the tensors, sorted by offset, cover the data exactly. Makes their offsets absolute.
void check_layout(std::vector<TensorEntry>& tensors, uint64_t data_begin, uint64_t file_size,
                  const std::string& source) {
  uint64_t expected_begin = 0;
  for (TensorEntry& entry : tensors) {
    const std::string tensor = cat(source, ": tensor ", quote(entry.name));
    if (entry.begin != expected_begin || entry.end < entry.begin) {
      fail(tensor, ": has the data offsets [", entry.begin, ", ", entry.end,
           "], expected them to start at ", expected_begin, ", where the tensor before it ends");
    }
    const uint64_t bytes = checked_bytes(entry.dtype, entry.shape, tensor);
    if (entry.end - entry.begin != bytes) {
      fail(tensor, ": has ", grouped(entry.end - entry.begin), " bytes, expected ", grouped(bytes),
           " for ", dtype_name(entry.dtype), " of shape ", entry.shape.text());
    }
    expected_begin = entry.end;
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  const uint64_t expected_size = data_begin + expected_begin;
  if (file_size < expected_size) {
    throw Error(cat(source, ": is cut short: has ", grouped(file_size), " bytes, expected ",
                    grouped(expected_size)),
                kDownloadAgain);
  }
  if (file_size > expected_size) {
    throw Error(cat(source, ": has ", grouped(file_size - expected_size),
                    " bytes after its last tensor, which ends at byte ", grouped(expected_size)),
                kDownloadAgain);
  }
}

// A JSON string including its quotes.
std::string json_string(const std::string& text) {
  return JsonWriter(JsonWriter::Layout::one_line).value(text).text();
}

std::string header_entry(const TensorEntry& entry, uint64_t begin, uint64_t end) {
  std::string dims;
  for (size_t i = 0; i < entry.shape.rank(); ++i) {
    dims += cat(i == 0 ? "" : ",", entry.shape[i]);
  }
  return cat(json_string(entry.name), R"(:{"dtype":")", dtype_name(entry.dtype), R"(","shape":[)",
             dims, R"(],"data_offsets":[)", begin, ",", end, "]}");
}

std::string header_metadata(const std::map<std::string, std::string>& metadata) {
  std::string members;
  for (const auto& [key, value] : metadata) {
    members += cat(members.empty() ? "" : ",", json_string(key), ":", json_string(value));
  }
  return cat("\"", kMetadataKey, "\":{", members, "}");
}

}  // namespace

SafetensorsHeader parse_safetensors(std::string_view head, uint64_t file_size,
                                    const std::string& source) {
  const std::string_view text = header_text(head, file_size, source);
  const Json document = Json::parse(text, cat(source, ": header"));
  SafetensorsHeader header;
  header.tensors.reserve(document.size());
  for (size_t i = 0; i < document.size(); ++i) {
    if (document.key(i) == kMetadataKey) {
      parse_metadata(document.value(i), header);
    } else {
      header.tensors.push_back(parse_entry(document.key(i), document.value(i), source));
    }
  }
  // Tensors that begin at the same place are ordered by their end, so empty ones come first.
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  check_layout(header.tensors, kLengthBytes + text.size(), file_size, source);
  return header;
}

SafetensorsHeader read_safetensors_header(const fs::path& path) {
  return read_safetensors_header(InputFile(path), path);
}

SafetensorsHeader read_safetensors_header(const InputFile& file, const fs::path& path) {
  constexpr uint64_t kFirstRead = 512;  // enough for the length, and for all of a git-LFS pointer
  std::string head = file.read(0, std::min(file.size(), kFirstRead));
  if (head.size() >= kLengthBytes && header_length(head) <= kMaxSafetensorsHeader) {
    const uint64_t wanted = std::min(file.size(), kLengthBytes + header_length(head));
    if (wanted > head.size()) head += file.read(head.size(), wanted - head.size());
  }
  return parse_safetensors(head, file.size(), quote(path.string()));
}

std::string safetensors_head(const std::vector<TensorEntry>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  if (!metadata.empty()) header += header_metadata(metadata);
  uint64_t offset = 0;
  for (const TensorEntry& entry : tensors) {
    const uint64_t end = offset + (entry.end - entry.begin);
    header += cat(header.size() > 1 ? "," : "", header_entry(entry, offset, end));
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  FP8KV_ASSERT(header.size() <= kMaxSafetensorsHeader);

  std::string bytes(kLengthBytes, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + header;
}

std::string safetensors_bytes(std::vector<TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    if (a.tensor.dtype != b.tensor.dtype) return a.tensor.dtype > b.tensor.dtype;
    return a.name < b.name;
  });
  std::vector<TensorEntry> entries;
  uint64_t data_bytes = 0;
  for (const TensorToWrite& item : tensors) {
    entries.push_back({item.name, item.tensor.dtype, item.tensor.shape, 0, item.tensor.bytes()});
    data_bytes += item.tensor.bytes();
  }
  std::string bytes = safetensors_head(entries, metadata);
  bytes.reserve(bytes.size() + data_bytes);
  for (const TensorToWrite& item : tensors) {
    bytes.append(reinterpret_cast<const char*>(item.tensor.data), item.tensor.bytes());
  }
  return bytes;
}

}  // namespace fp8kv
