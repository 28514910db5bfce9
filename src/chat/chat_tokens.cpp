#include "chat/chat_tokens.h"

namespace fp8kv {

ChatTokens::ChatTokens(const Tokenizer& tokenizer, const ChatTemplate& chat, bool user_specials)
    : tokenizer_(tokenizer),
      user_specials_(user_specials),
      control_(tokenizer.control_tokens(chat.literals())) {}

std::vector<int32_t> ChatTokens::encode(const jinja::MarkedText& text) const {
  if (user_specials_) return tokenizer_.encode(text.bytes(), false);
  std::vector<TextSpan> closed;
  size_t begin = 0;
  for (const jinja::MarkedText::Run& run : text.runs()) {
    if (run.origin == jinja::Origin::given) closed.push_back({begin, run.end});
    begin = run.end;
  }
  return tokenizer_.encode_guarded(text.bytes(), closed, control_);
}

}  // namespace fp8kv
