// Turns a rendered conversation into token ids.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "chat/chat_template.h"
#include "text/tokenizer.h"

namespace fp8kv {

class ChatTokens {
 public:
  // `user_specials`: control tokens spelled out in messages become tokens, the default of
  // transformers. Otherwise they stay text. REQUIRES `tokenizer` to outlive this object.
  ChatTokens(const Tokenizer& tokenizer, const ChatTemplate& chat, bool user_specials);

  // Adds no BOS or EOS beyond those of the template. Thread-safe.
  std::vector<int32_t> encode(const jinja::MarkedText& text) const;

 private:
  const Tokenizer& tokenizer_;
  bool user_specials_;
  std::unordered_set<int32_t> control_;
};

}  // namespace fp8kv
