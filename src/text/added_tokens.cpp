#include "text/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "text/models/parts.h"
#include "unicode/characters.h"

namespace fp8kv {

AddedTokens::Token AddedTokens::token_from(const Json& json) {
  check_keys(json, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  Token token;
  token.content = json.at("content").as_string();
  token.single_word = json.at("single_word").as_bool();
  token.lstrip = json.at("lstrip").as_bool();
  token.rstrip = json.at("rstrip").as_bool();
  token.normalized = json.at("normalized").as_bool();
  token.special = json.at("special").as_bool();
  if (token.content.empty()) fail(json.at("content").where(), ": is empty, expected a token");
  return token;
}

// Throws if the file gives a token another id than the tokenizers library would. The library keeps
// the model's own id, or takes the next free one, whatever the file says. Programs would disagree
// about such a model.
void AddedTokens::check_id(const Json& json, const Token& token,
                           const Vocabulary& vocabulary) const {
  const int64_t id = json.at("id").as_int();
  const int32_t known = vocabulary.find(token.content);
  const int64_t expected =
      known != Vocabulary::kNone
          ? known
          : std::max<int64_t>(static_cast<int64_t>(vocabulary.size()), end_id_);
  if (id == expected && expected < INT32_MAX) return;
  fail(json.at("id").where(), ": is ", id, " for ", quote(token.content), ", expected ", expected,
       known != Vocabulary::kNone ? " as in model.vocab" : ", the next free one");
}

AddedTokens::AddedTokens(const std::optional<Json>& tokens, const Vocabulary& vocabulary,
                         const Normalizer& normalizer) {
  if (tokens && !tokens->is_array()) {
    fail(tokens->where(), ": is ", tokens->brief(), ", expected an array");
  }
  Normalizer::Scratch scratch;
  PatternScratch match;
  for (size_t i = 0; tokens && i < tokens->size(); ++i) {
    const Json json = (*tokens)[i];
    Token token = token_from(json);
    check_id(json, token, vocabulary);
    token.id = static_cast<int32_t>(json.at("id").as_int());
    const std::string content = token.content;
    const std::string text(token.normalized ? normalizer.apply(content, true, scratch, match)
                                            : content);
    if (text.empty()) {
      fail(json.at("content").where(), ": nothing is left of ", quote(content),
           " after normalisation");
    }
    if (ids_.contains(content) || !put(std::move(token), text)) {
      fail(json.at("content").where(), ": ", quote(content), " looks like another added token");
    }
  }
}

AddedTokens::AddedTokens(std::vector<Token> tokens) {
  for (Token& token : tokens) {
    std::string text = token.content;
    put(std::move(token), std::move(text));
  }
}

bool AddedTokens::put(Token token, std::string text) {
  if (token.in_text && !finders_[token.normalized].add(text, token.id)) return false;
  if (token.in_text && token.normalized) contents_.add(token.content, token.id);
  ids_.emplace(token.content, token.id);
  if (token.special) special_.insert(token.content);
  end_id_ = std::max(end_id_, token.id + 1);
  const int32_t id = token.id;
  by_id_.emplace(id, SearchedToken{std::move(token), std::move(text)});
  return true;
}

int32_t AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? Vocabulary::kNone : found->second;
}

bool AddedTokens::is_special(int32_t id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && found->second.token.special;
}

const std::string* AddedTokens::text(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second.text;
}

namespace {

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word(last_char(text.substr(0, begin)))) return false;
  return end == text.size() || !is_word(next_char(text, end));
}

size_t before_spaces(std::string_view text, size_t at) {
  while (at > 0) {
    size_t begin = at - 1;
    while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    size_t end = begin;
    if (!is_white_space(next_char(text, end))) break;
    at = begin;
  }
  return at;
}

size_t after_spaces(std::string_view text, size_t at) {
  for (size_t end = at; end < text.size(); at = end) {
    if (!is_white_space(next_char(text, end))) break;
  }
  return at;
}

}  // namespace

bool TokenGuard::is_closed(size_t begin, size_t end) const {
  const auto after =
      std::upper_bound(closed.begin(), closed.end(), begin,
                       [](size_t at, const TextSpan& span) { return at < span.begin; });
  return after != closed.begin() && end <= std::prev(after)->end;
}

std::unordered_set<int32_t> AddedTokens::control_tokens(std::string_view literals) const {
  std::unordered_set<int32_t> control;
  for (const auto& [id, entry] : by_id_) {
    const std::string& content = entry.token.content;
    const bool is_written =
        after_spaces(content, 0) < content.size() && literals.find(content) != literals.npos;
    if (entry.token.special || is_written) control.insert(id);
  }
  return control;
}

bool AddedTokens::are_spelled(std::string_view text, const TokenGuard& guard) const {
  for (const TextSpan& span : guard.closed) {
    const std::string_view part = text.substr(0, span.end);
    InterruptEvery interrupt;
    for (size_t at = span.begin; contents_.size() > 0 && at < span.end; ++at) {
      interrupt.passed(at);
      bool found = false;
      contents_.for_each_at(part, at,
                            [&](size_t, int32_t id) { found |= guard.control.contains(id); });
      if (found) return true;
    }
  }
  return false;
}

std::optional<ByteTrie::Found> AddedTokens::found_at(std::string_view text, size_t at,
                                                     bool normalized,
                                                     const TokenGuard* guard) const {
  if (guard == nullptr) return finders_[normalized].longest_at(text, at);
  std::optional<ByteTrie::Found> longest;
  const auto take = [&](size_t length, int32_t id) {
    const bool hidden =
        guard->control.contains(id) && (normalized || guard->is_closed(at, at + length));
    if (!hidden && (!longest || length > longest->length)) longest = {id, length};
  };
  finders_[normalized].for_each_at(text, at, take);
  if (normalized || !guard->by_content) return longest;
  contents_.for_each_at(text, at, [&](size_t length, int32_t id) {
    if (guard->control.contains(id)) take(length, id);
  });
  return longest;
}

void AddedTokens::cut(std::string_view text, bool normalized, std::vector<Piece>& pieces,
                      const TokenGuard* guard) const {
  size_t done = 0;
  InterruptEvery interrupt;
  for (size_t at = 0; at < text.size();) {
    interrupt.passed(at);
    const std::optional<ByteTrie::Found> found = found_at(text, at, normalized, guard);
    if (!found) {
      ++at;
      continue;
    }
    const Token& token = by_id_.at(found->value).token;
    size_t begin = at;
    size_t end = at = at + found->length;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    // Spaces taken by the token before are not taken again. A token that strips to its left and
    // lies within those spaces is gone; any other token there still counts.
    if (token.lstrip) begin = std::max(before_spaces(text, begin), done);
    if (token.rstrip) end = after_spaces(text, end);
    if (begin >= end) continue;
    if (done < begin) pieces.push_back({done, begin, Vocabulary::kNone});
    pieces.push_back({begin, end, found->value});
    done = end;
  }
  if (done < text.size()) pieces.push_back({done, text.size(), Vocabulary::kNone});
}

}  // namespace fp8kv
