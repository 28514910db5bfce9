// Reads vocab.json and merges.txt, as GPT-2 has them. Only the tokenizer's class tells which
// pre-tokenizer and normaliser belong to them.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "files/file.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"

namespace fp8kv {
namespace {

using Token = AddedTokens::Token;

struct NamedToken {
  std::string_view key;
  std::string_view content;
};

// Source: the classes of these names in transformers 5.
struct TokenizerClass {
  std::string_view name;
  std::string_view normalizer;     // as in a tokenizer.json
  std::string_view pre_tokenizer;  // as in a tokenizer.json; "@" stands for add_prefix_space
  std::vector<NamedToken> tokens;  // used if no config names others
};

constexpr std::string_view kNfc = R"({"type":"NFC"})";
constexpr std::string_view kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":@,"trim_offsets":true,"use_regex":true})";
constexpr std::string_view kDigitsByteLevel =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
    R"({"type":"ByteLevel","add_prefix_space":@,"trim_offsets":true,"use_regex":true}]})";
constexpr std::string_view kQwen2 =
    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
    R"("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|)"
    R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)"
    R"("behavior":"Isolated","invert":false},)"
    R"({"type":"ByteLevel","add_prefix_space":@,"trim_offsets":true,"use_regex":false}]})";
constexpr std::string_view kEnd = "<|endoftext|>";

const std::vector<TokenizerClass>& classes() {
  static const std::vector<NamedToken> gpt2 = {
      {"bos_token", kEnd}, {"eos_token", kEnd}, {"unk_token", kEnd}};
  static const std::vector<TokenizerClass> all = {
      {"", "null", kByteLevel, gpt2},  // no class is given
      {"GPT2Tokenizer", "null", kByteLevel, gpt2},
      {"CodeGenTokenizer", "null", kByteLevel, gpt2},
      {"GPTNeoXTokenizer",
       kNfc,
       kByteLevel,
       {{"bos_token", kEnd},
        {"eos_token", kEnd},
        {"unk_token", kEnd},
        {"pad_token", "<|padding|>"}}},
      {"Qwen2Tokenizer",
       kNfc,
       kQwen2,
       {{"eos_token", kEnd}, {"unk_token", kEnd}, {"pad_token", kEnd}}},
      {"CohereTokenizer",
       kNfc,
       kDigitsByteLevel,
       {{"bos_token", "<BOS_TOKEN>"},
        {"eos_token", "<|END_OF_TURN_TOKEN|>"},
        {"unk_token", "<UNK>"},
        {"pad_token", "<PAD>"},
        {"cls_token", "<CLS>"},
        {"sep_token", "<SEP>"},
        {"mask_token", "<MASK_TOKEN>"}}},
  };
  return all;
}

const TokenizerClass& class_of(const TokenizerConfig& config) {
  std::vector<std::string> names;
  for (const TokenizerClass& each : classes()) {
    if (each.name == config.tokenizer_class) return each;
    if (!each.name.empty()) names.emplace_back(each.name);
  }
  throw Error(cat(config.where, ": tokenizer_class: ", quote(config.tokenizer_class),
                  " is not supported with vocab.json and merges.txt, only ", join(names), " are"),
              "save the tokenizer with transformers, which writes a tokenizer.json");
}

Json part(std::string_view text, const TokenizerConfig& config) {
  std::string json(text);
  if (const size_t at = json.find('@'); at != json.npos) {
    json.replace(at, 1, config.add_prefix_space.value_or(false) ? "true" : "false");
  }
  return Json::parse(json, config.tokenizer_class);
}

// Names the tokens that the class has unless a config says otherwise.
void name_from_class(const TokenizerClass& row, const Vocabulary& vocabulary,
                     TokenizerConfig& config) {
  for (const NamedToken& each : row.tokens) {
    if (vocabulary.find(each.content) == Vocabulary::kNone) continue;
    Token token;
    token.content = each.content;
    token.special = true;
    config.named.try_emplace(std::string(each.key), std::move(token));
  }
}

}  // namespace

TokenizerParts parts_from_merges(const std::filesystem::path& folder) {
  TokenizerConfig config = TokenizerConfig::read(folder);
  const TokenizerClass& row = class_of(config);
  const std::filesystem::path merges = folder / "merges.txt";
  const Json normalizer_json = part(row.normalizer, config);
  Normalizer normalizer;
  if (!normalizer_json.is_null()) normalizer = Normalizer::from_json(normalizer_json);
  PreTokenizer pre_tokenizer = PreTokenizer::from_json(part(row.pre_tokenizer, config), normalizer);
  const std::string text = read_regular_text(merges, uint64_t{1} << 30);
  TokenModel model(
      Bpe(bpe_table_from_files(Json::read(folder / "vocab.json"), text, merges.string()), true));
  name_from_class(row, model.vocabulary(), config);
  std::vector<Token> tokens = config.resolve(model.vocabulary(), TokenizerConfig::Renames::refused);
  Template affixes =
      config.affixes(config.add_bos_token.value_or(false), config.add_eos_token.value_or(false),
                     tokens, model.vocabulary());
  const Json decoder = Json::parse(R"({"type":"ByteLevel"})", "decoder");
  return {std::move(normalizer),          std::move(pre_tokenizer), std::move(model),
          AddedTokens(std::move(tokens)), std::move(affixes),       Decoder::from_json(decoder)};
}

}  // namespace fp8kv
