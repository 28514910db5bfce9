// The tokens "<0x00>" to "<0xFF>", which stand for the bytes of characters without a token.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/models/vocabulary.h"

namespace fp8kv {

class BytePieces {
 public:
  BytePieces() { ids_.fill(Vocabulary::kNone); }  // has none
  explicit BytePieces(const Vocabulary& vocabulary);

  bool has_all() const;
  // Appends the ids of all bytes. Returns false and appends nothing if a byte has no token.
  bool append(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

// The byte of a token spelled with capital digits; -1 for any other token.
int byte_of_piece(std::string_view token);

}  // namespace fp8kv
