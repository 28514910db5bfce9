#include "inputs/chat_text.h"

#include <utility>

#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/chat_tokens.h"
#include "chat/template_files.h"
#include "options/run_date.h"

namespace fp8kv {

struct ChatText::Loaded {
  ChatTemplate chat;
  ChatTokens tokens;
};

ChatText::ChatText(std::filesystem::path folder, ChatRequest request, const Tokenizer& tokenizer,
                   Log& log)
    : folder_(std::move(folder)), request_(std::move(request)), tokenizer_(tokenizer), log_(log) {}

ChatText::~ChatText() = default;

std::string ChatText::used_template() const {
  return loaded_ ? loaded_->chat.file() : "";
}

const ChatText::Loaded& ChatText::loaded() {
  if (loaded_) return *loaded_;
  std::optional<ChatTemplate> found =
      ChatTemplate::find_in(folder_, request_.chat_template, run_seconds);
  if (!found) {
    throw Error(cat(quote(folder_.string()), ": has no chat template, no ", kChatTemplateFiles),
                "pass --chat-template FILE, such as that of the model's chat variant, or "
                "--chat-template none to join messages as 'role: content'");
  }
  log_.note(cat("chats are rendered with ", found->label()));
  ChatTokens tokens(tokenizer_, *found, request_.user_special_tokens);
  loaded_ = std::make_unique<const Loaded>(Loaded{*std::move(found), std::move(tokens)});
  return *loaded_;
}

ChatText::Rendered ChatText::record(const Json& record, bool add_generation_prompt) {
  jinja::MarkedText text = loaded().chat.render(record, add_generation_prompt);
  std::vector<int32_t> ids = loaded().tokens.encode(text);
  return {std::move(text), std::move(ids)};
}

ChatText::Rendered ChatText::turn(std::string_view said) {
  jinja::MarkedText text = loaded().chat.render_turn(said);
  std::vector<int32_t> ids = loaded().tokens.encode(text);
  return {std::move(text), std::move(ids)};
}

std::vector<int32_t> ChatText::answered(const jinja::MarkedText& conversation,
                                        std::string_view answer) {
  jinja::MarkedText text = conversation;
  text.append(answer, jinja::Origin::given);
  return loaded().tokens.encode(text);
}

std::vector<int32_t> ChatText::joined(std::string_view text) const {
  if (request_.user_special_tokens) return tokenizer_.encode(text, false);
  const TextSpan whole{0, text.size()};
  return tokenizer_.encode_guarded(text, {&whole, 1}, tokenizer_.control_tokens(""));
}

}  // namespace fp8kv
