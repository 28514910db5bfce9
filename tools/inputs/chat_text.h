// Conversations for a model: rendered by its chat template, and encoded as ids.
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
  // Loads the template only when the first conversation comes, so a model with an unusable template
  // can still run text. REQUIRES `tokenizer` and `log` to outlive this object.
  ChatText(std::filesystem::path folder, ChatRequest request, const Tokenizer& tokenizer, Log& log);
  ~ChatText();

  // Whether messages are joined as plain text. Then only joined() may be called.
  bool joins() const { return request_.chat_template == "none"; }

  // ChatTemplate::file() of the template in use; "" if none was used.
  std::string used_template() const;

  struct Rendered {
    jinja::MarkedText text;
    std::vector<int32_t> ids;
  };
  // Both say on the log which template they use, on the first call. Both throw if the model has no
  // template.
  Rendered record(const Json& record, bool add_generation_prompt);
  Rendered turn(std::string_view text);
  // Ids of a rendered conversation, or a part of one, with `answer` behind it. Special tokens that
  // the answer spells stay text, unless the request says otherwise.
  std::vector<int32_t> answered(const jinja::MarkedText& conversation, std::string_view answer);

  // Ids of messages joined as plain text, without BOS. Special tokens spelled in the text stay
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
