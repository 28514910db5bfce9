#include "text/models/byte_pieces.h"

#include <algorithm>

namespace fp8kv {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

BytePieces::BytePieces(const Vocabulary& vocabulary) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char piece[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
    ids_[byte] = vocabulary.find(std::string_view(piece, sizeof piece));
  }
}

bool BytePieces::has_all() const {
  return std::find(ids_.begin(), ids_.end(), Vocabulary::kNone) == ids_.end();
}

bool BytePieces::append(std::string_view bytes, std::vector<int32_t>& ids) const {
  const auto id_of = [&](char c) { return ids_[static_cast<unsigned char>(c)]; };
  if (std::any_of(bytes.begin(), bytes.end(),
                  [&](char c) { return id_of(c) == Vocabulary::kNone; })) {
    return false;
  }
  for (const char c : bytes) ids.push_back(id_of(c));
  return true;
}

int byte_of_piece(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const size_t high = kDigits.find(token[3]);
  const size_t low = kDigits.find(token[4]);
  return high == kDigits.npos || low == kDigits.npos ? -1 : static_cast<int>(16 * high + low);
}

}  // namespace fp8kv
