// Reads SentencePiece's tokenizer.model like the tokenizers that transformers wraps around it.
#include <algorithm>

#include "base/error.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"

namespace fp8kv {
namespace {

using Token = AddedTokens::Token;
using Type = SentencePieceFile::Type;

// The classes that put BOS before a text and nothing behind it, unless their config says otherwise.
constexpr std::string_view kClasses[] = {"",  // no class is given
                                         "BaichuanTokenizer",
                                         "CodeLlamaTokenizer",
                                         "GemmaTokenizer",
                                         "InternLM2Tokenizer",
                                         "InternLM3Tokenizer",
                                         "InternLMTokenizer",
                                         "LlamaTokenizer",
                                         "YiTokenizer"};

bool puts_bos(const TokenizerConfig& config) {
  if (config.add_bos_token) return *config.add_bos_token;
  if (std::find(std::begin(kClasses), std::end(kClasses), config.tokenizer_class) ==
      std::end(kClasses)) {
    throw Error(cat(config.where, ": tokenizer_class: ", quote(config.tokenizer_class),
                    " is not known to put a BOS token before a text or not"),
                "say it there: \"add_bos_token\": true or false");
  }
  return true;
}

// Takes BOS and EOS from the file if no config names others.
void name_from_file(const SentencePieceFile& file, const Vocabulary& vocabulary,
                    TokenizerConfig& config) {
  const auto name = [&](const char* key, const std::string& piece) {
    const int32_t id = vocabulary.find(piece);
    const bool is_control =
        id != Vocabulary::kNone && file.pieces[static_cast<size_t>(id)].type == Type::control;
    Token token;
    token.content = piece;
    token.special = true;
    token.in_text = false;
    if (is_control) config.named.try_emplace(key, std::move(token));
  };
  name("bos_token", file.bos_piece);
  name("eos_token", file.eos_piece);
}

// The tokens of the config, and the control pieces. In a BPE model also the user-defined pieces,
// which are never merged. In a Unigram model their scores have that effect.
AddedTokens added_tokens(const SentencePieceFile& file, std::vector<Token> tokens) {
  // The file's own normaliser never changes the config's tokens.
  for (Token& token : tokens) token.normalized = false;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    const bool control = piece.type == Type::control;
    const bool whole =
        piece.type == Type::user_defined && file.kind == SentencePieceFile::Kind::bpe;
    if (!control && !whole) continue;
    const bool known = std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
      return token.content == piece.text || token.id == static_cast<int32_t>(id);
    });
    // A user-defined piece that the config names too is searched before normalisation, and again
    // after it.
    if (known && control) continue;
    Token token;
    token.id = static_cast<int32_t>(id);
    token.content = piece.text;
    token.special = control;
    token.normalized = whole;
    token.in_text = whole;
    tokens.push_back(std::move(token));
  }
  return AddedTokens(std::move(tokens));
}

}  // namespace

TokenizerParts parts_from_pieces(const std::filesystem::path& folder) {
  SentencePieceFile file = SentencePieceFile::read(folder / "tokenizer.model");
  TokenizerConfig config = TokenizerConfig::read(folder);
  if (config.add_prefix_space == false) file.add_dummy_prefix = false;
  const bool is_bpe = file.kind == SentencePieceFile::Kind::bpe;
  TokenModel model = is_bpe ? TokenModel(Bpe(bpe_table_from_pieces(file), false))
                            : TokenModel(Unigram(unigram_table_from_pieces(file)));
  const bool bos = puts_bos(config);
  const Vocabulary& vocabulary = model.vocabulary();
  std::vector<Token> tokens = config.resolve(vocabulary, TokenizerConfig::Renames::allowed);
  name_from_file(file, vocabulary, config);
  Template affixes = config.affixes(bos, config.add_eos_token.value_or(false), tokens, vocabulary);
  return {Normalizer::of_pieces(PieceNormalizer(file, !config.legacy), file.where),
          PreTokenizer(),
          std::move(model),
          added_tokens(file, std::move(tokens)),
          std::move(affixes),
          Decoder::of_pieces(file)};
}

}  // namespace fp8kv
