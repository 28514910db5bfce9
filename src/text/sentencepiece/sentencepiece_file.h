// SentencePiece's own file, tokenizer.model: a protobuf message with the pieces and the rules of
// normalisation. Source: sentencepiece_model.proto of https://github.com/google/sentencepiece.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/bpe_table.h"
#include "text/models/unigram.h"

namespace fp8kv {

struct SentencePieceFile {
  enum class Kind { unigram = 1, bpe = 2 };
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
    // Whether text can become this piece. Other pieces are reserved for SentencePiece itself.
    bool in_text() const {
      return type == Type::normal || type == Type::user_defined || type == Type::unused;
    }
  };

  std::string where;  // the file, for messages
  Kind kind = Kind::unigram;
  std::vector<Piece> pieces;  // by id
  int32_t unknown_id = -1;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;

  std::string charsmap;  // empty: every character stays as it is
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  // Throws, naming the part, for a file of another kind, for what SentencePiece itself refuses, and
  // for unsupported features.
  static SentencePieceFile read(const std::filesystem::path& path);

  Vocabulary vocabulary() const;

  std::vector<std::string_view> user_defined() const;
};

// REQUIRES a file of the table's kind. Throws, naming the piece, if results would depend on more
// than the scores.
BpeTable bpe_table_from_pieces(const SentencePieceFile& file);
UnigramTable unigram_table_from_pieces(const SentencePieceFile& file);

}  // namespace fp8kv
