#include "text/sentencepiece/sentencepiece_file.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/file.h"
#include "text/sentencepiece/protobuf.h"

namespace fp8kv {
namespace {

using Kind = SentencePieceFile::Kind;
using Type = SentencePieceFile::Type;
using Piece = SentencePieceFile::Piece;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

void check_utf8(std::string_view text, const std::string& where) {
  if (!is_utf8(text)) fail(where, ": is not valid UTF-8");
}

Piece read_piece(std::string_view message, const std::string& where) {
  Piece piece;
  for (ProtobufReader field(message, where); field.next();) {
    if (field.field() == 1) piece.text = field.as_bytes("piece");
    if (field.field() == 2) piece.score = field.as_float("score");
    if (field.field() == 3) {
      const int64_t type = field.as_int("type");
      if (type < 1 || type > 6) fail(where, ".type: is ", type, ", expected 1 to 6");
      piece.type = static_cast<Type>(type);
    }
  }
  if (piece.text.empty()) fail(where, ".piece: is empty");
  check_utf8(piece.text, where + ".piece");
  if (!std::isfinite(piece.score)) fail(where, ".score: is ", piece.score, ", expected a number");
  return piece;
}

void read_kind(int64_t type, const std::string& where, SentencePieceFile& file) {
  if (type != 1 && type != 2) {
    const char* name = type == 3 ? " (WORD)" : type == 4 ? " (CHAR)" : "";
    fail(where, ".model_type: ", type, name, " is not supported, only 1 (UNIGRAM) and 2 (BPE) are");
  }
  file.kind = static_cast<Kind>(type);
}

void read_trainer_spec(std::string_view message, SentencePieceFile& file) {
  const std::string where = file.where + ": trainer_spec";
  for (ProtobufReader field(message, where); field.next();) {
    const auto text = [&](std::string_view name, std::string& to) {
      check_utf8(field.as_bytes(name), cat(where, ".", name));
      to = field.as_bytes(name);
    };
    switch (field.field()) {
      case 3:
        read_kind(field.as_int("model_type"), where, file);
        break;
      case 24:
        file.whitespace_as_suffix = field.as_bool("treat_whitespace_as_suffix");
        break;
      case 35:
        file.byte_fallback = field.as_bool("byte_fallback");
        break;
      case 44:
        text("unk_surface", file.unknown_surface);
        break;
      case 46:
        text("bos_piece", file.bos_piece);
        break;
      case 47:
        text("eos_piece", file.eos_piece);
        break;
      default:  // how it was trained
        break;
    }
  }
}

void read_normalizer_spec(std::string_view message, SentencePieceFile& file) {
  for (ProtobufReader field(message, file.where + ": normalizer_spec"); field.next();) {
    if (field.field() == 2) file.charsmap = field.as_bytes("precompiled_charsmap");
    if (field.field() == 3) file.add_dummy_prefix = field.as_bool("add_dummy_prefix");
    if (field.field() == 4)
      file.remove_extra_whitespaces = field.as_bool("remove_extra_whitespaces");
    if (field.field() == 5) file.escape_whitespaces = field.as_bool("escape_whitespaces");
  }
}

void check_denormalizer_spec(std::string_view message, const SentencePieceFile& file) {
  const std::string where = file.where + ": denormalizer_spec";
  for (ProtobufReader field(message, where); field.next();) {
    if (field.field() == 2 && !field.as_bytes("precompiled_charsmap").empty()) {
      fail(where, ".precompiled_charsmap: is not supported, expected none");
    }
  }
}

// Checks the pieces as SentencePiece does when it reads a file.
void check_pieces(SentencePieceFile& file) {
  size_t bytes = 0;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    Piece& piece = file.pieces[id];
    // Some converters add a zero byte beside "<0x00>".
    if (file.byte_fallback && piece.text == std::string_view("\0", 1)) piece.type = Type::unused;
    const auto where = [&] { return cat(file.where, ": pieces[", id, "]"); };
    if (piece.type == Type::unknown) {
      if (file.unknown_id >= 0) fail(where(), ": is a second unknown piece");
      file.unknown_id = static_cast<int32_t>(id);
    }
    if (piece.type != Type::byte) continue;
    if (!file.byte_fallback) fail(where(), ": is a byte, but byte_fallback is false");
    if (byte_of_piece(piece.text) < 0) {
      fail(where(), ": is ", quote(piece.text), ", expected a byte such as '<0x0A>'");
    }
    ++bytes;
  }
  if (file.unknown_id < 0) fail(file.where, ": pieces: none of them is the unknown piece");
  if (file.byte_fallback && bytes != 256) {
    fail(file.where, ": pieces: ", bytes, " of them are bytes, expected 256 with byte_fallback");
  }
}

// Whether the file is a text of lines such as "IQ== 0", which some models store under this name.
bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.substr(0, 1024).find('\n'));
  const size_t space = line.find(' ');
  return space != line.npos && space > 0 && space + 1 < line.size() &&
         line.find_first_not_of("0123456789", space + 1) == line.npos &&
         line.substr(0, space).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == line.npos;
}

}  // namespace

SentencePieceFile SentencePieceFile::read(const std::filesystem::path& path) {
  const std::string bytes = read_regular_text(path, kMostBytes);
  SentencePieceFile file;
  file.where = quote(path.string());
  if (is_tiktoken(bytes)) {
    throw Error(cat(file.where, ": is a vocabulary of tiktoken, expected one of SentencePiece"),
                "save the tokenizer with transformers, which writes a tokenizer.json");
  }
  for (ProtobufReader field(bytes, file.where); field.next();) {
    check_interrupt();
    if (field.field() == 1) {
      const std::string where = cat(file.where, ": pieces[", file.pieces.size(), "]");
      file.pieces.push_back(read_piece(field.as_bytes("pieces"), where));
    }
    if (field.field() == 2) read_trainer_spec(field.as_bytes("trainer_spec"), file);
    if (field.field() == 3) read_normalizer_spec(field.as_bytes("normalizer_spec"), file);
    if (field.field() == 5) check_denormalizer_spec(field.as_bytes("denormalizer_spec"), file);
  }
  check_pieces(file);
  return file;
}

Vocabulary SentencePieceFile::vocabulary() const {
  Vocabulary made(pieces.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (made.append(pieces[id].text)) continue;
    fail(where, ": pieces[", id, "]: is ", quote(pieces[id].text), ", as another piece is");
  }
  return made;
}

std::vector<std::string_view> SentencePieceFile::user_defined() const {
  std::vector<std::string_view> made;
  for (const Piece& piece : pieces) {
    if (piece.type == Type::user_defined) made.push_back(piece.text);
  }
  return made;
}

}  // namespace fp8kv
