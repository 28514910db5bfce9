// Conversations as a command runs them through a model: rendered by its chat template, as ids.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "jinja/values/marked_text.h"
#include "json/json.h"
#include "options/options.h"
#include "text/tokenizer.h"

namespace fp8kv {

class ChatText {
 public:
  // Reads nothing yet: a model whose template cannot be used can run text. REQUIRES all four to
  // outlive this, but for `folder` and `request`.
  ChatText(std::filesystem::path folder, ChatRequest request, const Tokenizer& tokenizer, Log& log);
  ~ChatText();

  // Whether messages are to be joined as plain text; only joined() is asked then.
  bool joins() const { return request_.chat_template == "none"; }

  // ChatTemplate::file() of the template that was used; "" where none was.
  std::string used_template() const;

  struct Rendered {
    jinja::MarkedText text;
    std::vector<int32_t> ids;
  };
  // Each says on the log which template is used, the first time. Throws where the model has none.
  Rendered record(const Json& record, bool add_generation_prompt);
  Rendered turn(std::string_view text);

  // Ids of messages that were joined as plain text, without BOS. Special tokens that they spell are
  // text, unless the request says otherwise. Thread-safe.
  std::vector<int32_t> joined(std::string_view text) const;

 private:
  struct Loaded;
  const Loaded& loaded();

  std::filesystem::path folder_;
  ChatRequest request_;
  const Tokenizer& tokenizer_;
  Log& log_;
  std::unique_ptr<const Loaded> loaded_;
};

}  // namespace fp8kv
