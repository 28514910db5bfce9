// The chat templates of a model folder, as transformers finds them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

struct NamedTemplate {
  std::string name;  // "default" unless the model has several
  std::string source;
  std::string label;  // for messages: 'MODEL/tokenizer_config.json' (chat_template)
  std::string file;   // within the model, to be kept: "tokenizer_config.json (chat_template)"
};

// chat_template.jinja, which is the default, with additional_chat_templates/*.jinja; where there is
// neither, what tokenizer_config.json says, a text or a list of named ones; and where it says
// nothing, chat_template.json, which processors of images and sounds have. In the order of names.
std::vector<NamedTemplate> chat_templates_in(const std::filesystem::path& folder);

// The files that are looked for, for messages about a folder that has none.
inline constexpr const char* kChatTemplateFiles =
    "chat_template.jinja, no chat_template in its tokenizer_config.json, and no chat_template.json";

}  // namespace fp8kv
