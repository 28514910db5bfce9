#include "text/tokenizer_config.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "json/object_file.h"

namespace fp8kv {
namespace {

using Token = TokenizerConfig::Token;

// In the order in which transformers assigns ids to tokens without one.
constexpr std::string_view kNamed[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

// Reads a token given as a string, or as an object with flags.
Token token_from(const Json& json) {
  Token token;
  token.special = true;
  if (json.is_string()) {
    token.content = json.as_string();
  } else {
    token.content = json.at("content").as_string();
    token.single_word = json.get_bool("single_word", false);
    token.lstrip = json.get_bool("lstrip", false);
    token.rstrip = json.get_bool("rstrip", false);
    token.normalized = json.get_bool("normalized", false);
    token.special = json.get_bool("special", true);
  }
  if (token.content.empty()) fail(json.where(), ": is empty, expected a token");
  return token;
}

int32_t checked_id(int64_t id, const std::string& where) {
  // No memory is allocated by id here, and embeddings have fewer rows than this.
  if (id < 0 || id >= INT32_MAX) fail(where, ": the id ", id, " is out of range");
  return static_cast<int32_t>(id);
}

int32_t id_from_key(const std::string& key, const std::string& where) {
  const bool digits =
      !key.empty() && key.size() <= 10 && key.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) fail(where, ": the key ", quote(key), " is no token id");
  return checked_id(std::stoll(key), where);
}

void read_named(const Json& json, TokenizerConfig& config) {
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string& key = json.key(i);
    if (std::find(std::begin(kNamed), std::end(kNamed), key) == std::end(kNamed)) continue;
    const Json value = json.value(i);
    // tokenizer_config.json wins over special_tokens_map.json, which is read later.
    config.named.try_emplace(key,
                             value.is_null() ? std::nullopt : std::optional(token_from(value)));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto list = json.find(key);
    for (size_t i = 0; list && i < list->size(); ++i) {
      config.others.push_back(token_from(list->is_array() ? (*list)[i] : list->value(i)));
    }
  }
}

void read_config(const Json& json, TokenizerConfig& config) {
  config.tokenizer_class = json.get_string("tokenizer_class", "");
  if (config.tokenizer_class.ends_with("Fast")) {
    config.tokenizer_class.resize(config.tokenizer_class.size() - 4);
  }
  const auto flag = [&](std::string_view key) {
    const auto value = json.find(key);
    return value ? std::optional(value->as_bool()) : std::nullopt;
  };
  config.add_bos_token = flag("add_bos_token");
  config.add_eos_token = flag("add_eos_token");
  config.add_prefix_space = flag("add_prefix_space");
  config.legacy = flag("legacy").value_or(true);
  const auto sampling = json.find("sp_model_kwargs");
  if (sampling && sampling->size() > 0) {
    fail(sampling->where(), ": is ", sampling->brief(), ", expected {}");
  }
  const auto decoder = json.find("added_tokens_decoder");
  for (size_t i = 0; decoder && i < decoder->size(); ++i) {
    Token token = token_from(decoder->value(i));
    token.special = decoder->value(i).get_bool("special", false);
    token.id = id_from_key(decoder->key(i), decoder->where());
    config.others.push_back(std::move(token));
  }
  read_named(json, config);
}

// Assigns ids to tokens.
class Resolver {
 public:
  Resolver(const Vocabulary& vocabulary, const TokenizerConfig& config,
           TokenizerConfig::Renames renames)
      : vocabulary_(vocabulary), config_(config), renames_(renames), next_(vocabulary.end_id()) {}

  void add(Token token) {
    const auto known = ids_.find(token.content);
    const int32_t here = known != ids_.end() ? known->second : vocabulary_.find(token.content);
    if (token.id == Vocabulary::kNone) {
      token.id = here == Vocabulary::kNone ? next_ : here;
    } else if (here != Vocabulary::kNone && here != token.id) {
      fail(config_.where, ": ", quote(token.content), " has the id ", token.id, ", but ", here,
           known != ids_.end() ? " elsewhere" : " in the vocabulary");
    }
    if (known != ids_.end()) return;
    const bool renamed = here == Vocabulary::kNone && vocabulary_.has(token.id);
    if (renamed && renames_ == TokenizerConfig::Renames::refused) {
      fail(config_.where, ": ", quote(token.content), " has the id ", token.id,
           ", which is that of ", quote(vocabulary_.token(token.id)), " in the vocabulary");
    }
    next_ = std::max(next_, token.id + 1);
    ids_.emplace(token.content, token.id);
    made_.push_back(std::move(token));
  }

  std::vector<Token> take() { return std::move(made_); }

 private:
  const Vocabulary& vocabulary_;
  const TokenizerConfig& config_;
  TokenizerConfig::Renames renames_;
  int32_t next_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Token> made_;
};

}  // namespace

TokenizerConfig TokenizerConfig::read(const std::filesystem::path& folder) {
  TokenizerConfig config;
  const std::filesystem::path path = folder / "tokenizer_config.json";
  config.where = quote(path.string());
  if (const auto json = find_object(path)) read_config(*json, config);
  if (const auto json = find_object(folder / "special_tokens_map.json")) read_named(*json, config);
  if (const auto json = find_object(folder / "added_tokens.json")) {
    for (size_t i = 0; i < json->size(); ++i) {
      Token token;
      token.content = json->key(i);
      token.id = checked_id(json->value(i).as_int(), json->value(i).where());
      if (token.content.empty()) fail(json->where(), ": a token is empty");
      config.others.push_back(std::move(token));
    }
  }
  return config;
}

std::vector<Token> TokenizerConfig::resolve(const Vocabulary& vocabulary, Renames renames) const {
  Resolver resolver(vocabulary, *this, renames);
  std::vector<Token> numbered;
  for (const Token& token : others) {
    if (token.id != Vocabulary::kNone) numbered.push_back(token);
  }
  std::stable_sort(numbered.begin(), numbered.end(),
                   [](const Token& a, const Token& b) { return a.id < b.id; });
  for (Token& token : numbered) resolver.add(std::move(token));
  for (const std::string_view key : kNamed) {
    const auto found = named.find(key);
    if (found != named.end() && found->second) resolver.add(*found->second);
  }
  for (const Token& token : others) {
    if (token.id == Vocabulary::kNone) resolver.add(token);
  }
  return resolver.take();
}

Template TokenizerConfig::affixes(bool bos, bool eos, const std::vector<Token>& tokens,
                                  const Vocabulary& vocabulary) const {
  const auto ids_of = [&](bool wanted, std::string_view key) -> std::vector<int32_t> {
    const auto found = named.find(key);
    if (!wanted || found == named.end() || !found->second) return {};
    const std::string& content = found->second->content;
    const auto token = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const Token& each) { return each.content == content; });
    const int32_t id = token != tokens.end() ? token->id : vocabulary.find(content);
    if (id == Vocabulary::kNone) {
      fail(where, ": ", key, ": ", quote(content), " is not in the vocabulary");
    }
    return {id};
  };
  return {ids_of(bos, "bos_token"), ids_of(eos, "eos_token")};
}

}  // namespace fp8kv
