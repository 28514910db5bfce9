// Reads Mistral's tekken.json. It has tokens as bytes in the order of their ranks, a pattern that
// cuts words, and special tokens, whose ids come first.
#include <string_view>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/models/parts.h"
#include "text/tokenizer_parts.h"

namespace fp8kv {
namespace {

using Token = AddedTokens::Token;

// The special tokens that files up to version 7 may leave out. Source: mistral-common 1.13.
constexpr std::string_view kFirstSpecial[] = {"<unk>",
                                              "<s>",
                                              "</s>",
                                              "[INST]",
                                              "[/INST]",
                                              "[AVAILABLE_TOOLS]",
                                              "[/AVAILABLE_TOOLS]",
                                              "[TOOL_RESULTS]",
                                              "[/TOOL_RESULTS]",
                                              "[TOOL_CALLS]",
                                              "[IMG]",
                                              "<pad>",
                                              "[IMG_BREAK]",
                                              "[IMG_END]",
                                              "[PREFIX]",
                                              "[MIDDLE]",
                                              "[SUFFIX]",
                                              "[SYSTEM_PROMPT]",
                                              "[/SYSTEM_PROMPT]",
                                              "[TOOL_CONTENT]"};
constexpr std::string_view kBos = "<s>";
constexpr int64_t kMostTokens = int64_t{1} << 24;

int64_t count_at(const Json& config, const char* key) {
  const Json count = config.at(key);
  const int64_t value = count.as_int();
  if (value < 0 || value > kMostTokens) {
    fail(count.where(), ": is ", value, ", expected 0 to ", kMostTokens);
  }
  return value;
}

std::string bytes_of(const Json& base64) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string text = base64.as_string();
  std::string bytes;
  uint32_t bits = 0;
  size_t end = text.find_last_not_of('=') + 1;
  for (size_t i = 0; i < end; ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == kDigits.npos || text.size() % 4 != 0 || end + 2 < text.size()) {
      fail(base64.where(), ": is ", base64.brief(), ", expected base64");
    }
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xFF);
  }
  if (bytes.empty()) fail(base64.where(), ": is ", base64.brief(), ", expected bytes in base64");
  return bytes;
}

std::vector<std::string> tokens_of(const Json& json, int64_t count) {
  const Json list = array_at(json, "vocab");
  if (static_cast<int64_t>(list.size()) < count || count < 256) {
    fail(list.where(), ": has ", count_of(list.size(), "token"),
         ", expected what default_vocab_size has beyond special tokens, ", count,
         ", and no fewer than 256");
  }
  std::vector<std::string> tokens;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    check_interrupt();
    const Json token = list[i], rank = token.at("rank");
    if (rank.as_int() != static_cast<int64_t>(i)) {
      fail(rank.where(), ": is ", rank.brief(), ", expected ", i, ", as tokens are in order");
    }
    tokens.push_back(bytes_of(token.at("token_bytes")));
    if (i < 256 && tokens.back() != std::string(1, static_cast<char>(i))) {
      fail(token.at("token_bytes").where(), ": is not the byte ", i,
           ", as the first 256 tokens are bytes");
    }
  }
  return tokens;
}

// Returns `count` special tokens; the unnamed ones never occur in a text.
std::vector<Token> special_tokens(const Json& json, int64_t count) {
  std::vector<Token> tokens;
  const auto add = [&](std::string_view content, bool special) {
    Token token;
    token.id = static_cast<int32_t>(tokens.size());
    token.content = content;
    token.special = special;
    tokens.push_back(std::move(token));
  };
  if (const auto list = json.find("special_tokens")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const Json token = (*list)[i], rank = token.at("rank");
      if (rank.as_int() != static_cast<int64_t>(i)) {
        fail(rank.where(), ": is ", rank.brief(), ", expected ", i, ", as tokens are in order");
      }
      add(token.at("token_str").as_string(), token.get_bool("is_control", true));
    }
  } else {
    const Json version = json.at("config").at("version");
    const std::string name = version.as_string();
    if (name != "v3" && name != "v7") {
      fail(version.where(), ": is ", quote(name),
           ", and there are no special_tokens, which files later than v7 list");
    }
    for (const std::string_view content : kFirstSpecial) add(content, true);
  }
  if (static_cast<int64_t>(tokens.size()) > count) {
    fail(json.where(), ": has ", tokens.size(),
         " special tokens, expected no more than default_num_special_tokens, ", count);
  }
  while (static_cast<int64_t>(tokens.size()) < count) {
    add(cat("<SPECIAL_", tokens.size(), ">"), true);
  }
  return tokens;
}

PreTokenizer words_by(const Json& pattern) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object().member("type", "Sequence").key("pretokenizers").begin_array();
  json.begin_object().member("type", "Split").key("pattern").begin_object();
  json.member("Regex", pattern.as_string()).end_object();
  json.member("behavior", "Isolated").member("invert", false).end_object();
  json.begin_object().member("type", "ByteLevel").member("add_prefix_space", false);
  json.member("trim_offsets", true).member("use_regex", false).end_object();
  json.end_array().end_object();
  return PreTokenizer::from_json(Json::parse(json.text(), pattern.where()), Normalizer());
}

}  // namespace

TokenizerParts parts_from_tekken(const Json& json) {
  const Json config = json.at("config");
  const int64_t n_special = count_at(config, "default_num_special_tokens");
  const int64_t n_tokens = count_at(config, "default_vocab_size") - n_special;
  std::vector<Token> special = special_tokens(json, n_special);
  Template affixes;
  for (const Token& token : special) {
    if (token.content == kBos) affixes.prefix = {token.id};
  }
  if (affixes.prefix.empty()) {
    fail(json.where(), ": has no special token ", quote(kBos), ", which is put before a text");
  }
  TokenModel model(Bpe(bpe_table_from_ranks(tokens_of(json, n_tokens),
                                            static_cast<int32_t>(n_special), json.where()),
                       true));
  const Json decoder = Json::parse(R"({"type":"ByteLevel"})", "decoder");
  return {Normalizer(),       words_by(config.at("pattern")),
          std::move(model),   AddedTokens(std::move(special)),
          std::move(affixes), Decoder::from_json(decoder)};
}

}  // namespace fp8kv
