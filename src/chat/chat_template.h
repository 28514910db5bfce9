// Conversations as the text that a model was trained on: its chat template, with its special
// tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "chat/template_files.h"
#include "jinja/jinja.h"
#include "json/json.h"

namespace fp8kv {

class ChatTemplate {
 public:
  // Seconds since 1970: what templates that write the date are told.
  using Clock = std::function<int64_t()>;

  // The template of the model in `folder` that is called `choice`, or the file `choice`; "": the
  // one that transformers takes. Nothing when the model has none and none is chosen. Throws for a
  // choice that is not there, and for a template that cannot be used.
  static std::optional<ChatTemplate> find_in(const std::filesystem::path& folder,
                                             const std::string& choice, Clock clock);

  // Where it is from, for messages: 'MODEL/chat_template.jinja'.
  const std::string& label() const { return label_; }
  // The same without folders, for what is to be kept: "chat_template.jinja".
  const std::string& file() const { return file_; }

  // As apply_chat_template() of transformers renders a record of `messages`, or of ShareGPT's
  // `conversations`; a record may also have `tools`, a list, and `chat_template_kwargs`, an object.
  // Throws, naming the record, where the template refuses it.
  jinja::MarkedText render(const Json& record, bool add_generation_prompt) const;
  // One message of a user, and the beginning of the answer.
  jinja::MarkedText render_turn(std::string_view text) const;

  // See jinja::Template::literals.
  const std::string& literals() const { return template_.literals(); }

 private:
  ChatTemplate(jinja::Template made, const NamedTemplate& found, jinja::Template::Variables tokens,
               Clock clock)
      : template_(std::move(made)),
        label_(found.label),
        file_(found.file),
        tokens_(std::move(tokens)),
        clock_(std::move(clock)) {}

  jinja::Template template_;
  std::string label_;
  std::string file_;
  jinja::Template::Variables tokens_;  // bos_token and the like
  Clock clock_;
};

}  // namespace fp8kv
