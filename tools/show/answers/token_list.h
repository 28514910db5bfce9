// A document as the model sees it, token by token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace fp8kv {

struct TokenList {
  uint64_t record = 0;              // counted from 1
  std::string where;                // for messages: 'chats.jsonl':3
  std::string form;                 // "text", "messages"
  std::optional<std::string> text;  // nullopt: the record has ids
  std::vector<int32_t> ids;         // empty: there is nothing to run
  std::vector<size_t> windows;      // the start of each window in `ids`
};

std::string token_list_text(const TokenList& list, const Tokenizer& tokenizer);
// One JSON object on one line.
std::string token_list_json(const TokenList& list, const Tokenizer& tokenizer);

}  // namespace fp8kv
