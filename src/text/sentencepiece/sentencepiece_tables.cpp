// Converts the pieces of a SentencePiece model for our models. Follows SentencePiece 0.2.3; version
// 0.2.1 gives user-defined pieces other scores in a Unigram model.
#include <algorithm>
#include <bit>
#include <cfloat>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "unicode/characters.h"

namespace fp8kv {
namespace {

using Type = SentencePieceFile::Type;
using Piece = SentencePieceFile::Piece;

// Limits the work, since a piece is tried with every way to cut it in two.
constexpr size_t kLongestPiece = 1024;

// The ranks of pieces by score: a higher score merges earlier. As in SentencePiece, -0 is below 0.
std::vector<int32_t> ranks_of(const std::vector<Piece>& pieces) {
  const auto order = [](float score) {
    const auto bits = std::bit_cast<int32_t>(score);
    return bits < 0 ? bits ^ INT32_MAX : bits;
  };
  std::vector<int32_t> scores;
  for (const Piece& piece : pieces) scores.push_back(order(piece.score));
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<int32_t> ranks;
  for (const Piece& piece : pieces) {
    const auto at =
        std::lower_bound(scores.begin(), scores.end(), order(piece.score), std::greater<>());
    ranks.push_back(static_cast<int32_t>(at - scores.begin()));
  }
  return ranks;
}

bool is_one_char(std::string_view text) {
  return utf8_front(text).length == text.size();
}

// SentencePiece joins two neighbours if together they are a piece, the highest score first. So
// every way to cut a piece in two is a merge.
class Merges {
 public:
  Merges(const SentencePieceFile& file, BpeTable& table)
      : file_(file), table_(table), ranks_(ranks_of(file.pieces)) {}

  void add_of(int32_t id) {
    const Piece& piece = file_.pieces[static_cast<size_t>(id)];
    const std::string_view text = piece.text;
    const bool joins = piece.type == Type::normal || piece.type == Type::unused;
    // Text never becomes this character alone, but it still merges as a part of other pieces.
    if (is_one_char(text) && piece.type != Type::normal && piece.type != Type::user_defined) {
      bare(text);
    }
    if (!joins || is_one_char(text)) return;
    if (text.size() > kLongestPiece) {
      fail(file_.where, ": pieces[", id, "]: has ", text.size(), " bytes, expected at most ",
           kLongestPiece);
    }
    const int32_t rank = ranks_[static_cast<size_t>(id)];
    for (size_t at = utf8_front(text).length; at < text.size();
         at += utf8_front(text.substr(at)).length) {
      const int32_t left = symbol(text.substr(0, at));
      const int32_t right = left == kNone ? kNone : symbol(text.substr(at));
      if (right == kNone) continue;
      if (piece.type == Type::unused) {
        fail(file_.where, ": pieces[", id, "]: ", quote(text),
             " is unused, but text can become it; that is not supported in a BPE model");
      }
      table_.merges.push_back({left, right, rank, id});
    }
  }

 private:
  static constexpr int32_t kNone = Vocabulary::kNone;

  // The symbol for a part of text during merging: a character, or a piece that merges make.
  int32_t symbol(std::string_view text) {
    const int32_t id = table_.vocabulary.find(text);
    const Type type = id == kNone ? Type::unknown : file_.pieces[static_cast<size_t>(id)].type;
    if (type == Type::user_defined) return kNone;
    if (type == Type::normal || (type == Type::unused && !is_one_char(text))) return id;
    return is_one_char(text) ? bare(text) : kNone;
  }

  int32_t bare(std::string_view text) {
    size_t at = 0;
    const char32_t c = next_char(text, at);
    const auto next =
        table_.vocabulary.end_id() + static_cast<int32_t>(table_.bare_characters.size());
    const auto [known, is_new] = bare_.try_emplace(c, next);
    if (is_new) table_.bare_characters.push_back(c);
    return known->second;
  }

  const SentencePieceFile& file_;
  BpeTable& table_;
  std::vector<int32_t> ranks_;
  std::map<char32_t, int32_t> bare_;
};

}  // namespace

BpeTable bpe_table_from_pieces(const SentencePieceFile& file) {
  BpeTable table;
  table.where = file.where;
  table.vocabulary = file.vocabulary();
  table.unknown = file.pieces[static_cast<size_t>(file.unknown_id)].text;
  table.fuse_unknown = true;
  table.byte_fallback = file.byte_fallback;
  Merges merges(file, table);
  for (int32_t id = 0; id < table.vocabulary.end_id(); ++id) {
    check_interrupt();
    merges.add_of(id);
  }
  return table;
}

UnigramTable unigram_table_from_pieces(const SentencePieceFile& file) {
  UnigramTable table;
  table.where = file.where;
  table.vocabulary = file.vocabulary();
  table.rules = UnigramTable::Rules::sentencepiece;
  table.unknown_id = file.unknown_id;
  table.byte_fallback = file.byte_fallback;
  float worst = FLT_MAX;
  for (const Piece& piece : file.pieces) {
    if (piece.type == Type::normal) worst = std::min(worst, piece.score);
  }
  table.unknown_score = worst - 10.0f;
  for (const Piece& piece : file.pieces) {
    // A user-defined piece must win over any other cut of its characters.
    const auto bytes = static_cast<double>(piece.text.size());
    const bool preferred = piece.type == Type::user_defined;
    table.scores.push_back(preferred ? static_cast<float>(0.1 * (bytes - 1)) : piece.score);
    table.in_text.push_back(piece.in_text() && piece.type != Type::unused);
  }
  return table;
}

}  // namespace fp8kv
