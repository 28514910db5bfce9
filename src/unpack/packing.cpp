#include "unpack/packing.h"

#include <array>

namespace fp8kv {
namespace {

constexpr std::array<PackedForm, 6> kForms = {{
    {"\x1F\x8B", ".gz", "gzip data", Packing::gzip, ""},
    {"\x28\xB5\x2F\xFD", ".zst", "Zstandard data", Packing::zstd, ""},
    {"BZh", ".bz2", "bzip2 data", Packing::none,
     "unpack it, into a pipe if you like: bzip2 -dc FILE"},
    {std::string_view("\xFD\x37zXZ\0", 6), ".xz", "xz data", Packing::none,
     "unpack it, into a pipe if you like: xz -dc FILE"},
    {"\x04\x22\x4D\x18", ".lz4", "LZ4 data", Packing::none,
     "unpack it, into a pipe if you like: lz4 -dc FILE"},
    {"PK\3\4", ".zip", "a zip archive", Packing::none,
     "unpack it, into a pipe if you like: unzip -p FILE"},
}};

}  // namespace

const PackedForm* packed_form(std::string_view bytes) {
  for (const PackedForm& form : kForms) {
    if (bytes.starts_with(form.magic)) return &form;
  }
  return nullptr;
}

bool is_packed_suffix(std::string_view suffix) {
  for (const PackedForm& form : kForms) {
    if (form.packing != Packing::none && form.suffix == suffix) return true;
  }
  return false;
}

}  // namespace fp8kv
