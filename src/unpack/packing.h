// How files and parts of files are packed: a table of what their first bytes are.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

enum class Packing { none, gzip, zstd };

struct PackedForm {
  std::string_view magic;   // first bytes
  std::string_view suffix;  // of names, with its point; "": none is usual
  std::string_view name;    // "gzip data"
  Packing packing;          // none: not unpacked here
  std::string_view help;    // for what is not unpacked here: how to
};

// nullptr for bytes that begin like none of them.
const PackedForm* packed_form(std::string_view bytes);

// Whether names that end so are of packed files that are unpacked here.
bool is_packed_suffix(std::string_view suffix);

}  // namespace fp8kv
