// What a rendered conversation is to a model: token ids.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "chat/chat_template.h"
#include "text/tokenizer.h"

namespace fp8kv {

class ChatTokens {
 public:
  // `user_specials`: whether control tokens that messages spell become tokens, as transformers has
  // it unless it is told to sanitize; else they are text. REQUIRES `tokenizer` to outlive this.
  ChatTokens(const Tokenizer& tokenizer, const ChatTemplate& chat, bool user_specials);

  // Without BOS or EOS but those of the template. Thread-safe.
  std::vector<int32_t> encode(const jinja::MarkedText& text) const;

 private:
  const Tokenizer& tokenizer_;
  bool user_specials_;
  std::unordered_set<int32_t> control_;
};

}  // namespace fp8kv
