// Renders conversations as the text that a model was trained on: its chat template, with its
// special tokens.
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
  // Seconds since 1970, for templates that write the date.
  using Clock = std::function<int64_t()>;

  // Finds the template of the model in `folder` with the name `choice`, or the file `choice`; "":
  // the one that transformers takes. Returns nothing if the model has none and none was chosen.
  // Throws for a choice that does not exist, and for an unusable template.
  static std::optional<ChatTemplate> find_in(const std::filesystem::path& folder,
                                             const std::string& choice, Clock clock);

  // The template's origin for messages: 'MODEL/chat_template.jinja'.
  const std::string& label() const { return label_; }
  // The origin without folders, for records: "chat_template.jinja".
  const std::string& file() const { return file_; }

  // Renders a record like transformers' apply_chat_template(). It has `messages` or ShareGPT's
  // `conversations`, and optionally `tools`, a list, and `chat_template_kwargs`, an object. Throws,
  // naming the record, if the template refuses it.
  jinja::MarkedText render(const Json& record, bool add_generation_prompt) const;
  // Renders one user message, and the beginning of the answer.
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
