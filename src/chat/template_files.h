// Finds the chat templates of a model folder in the way of transformers.
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
  std::string file;   // file within the model, for records: "tokenizer_config.json (chat_template)"
};

// Returns the templates sorted by name, from the first of these sources that has any:
// - chat_template.jinja, which is the default, with additional_chat_templates/*.jinja;
// - tokenizer_config.json, with one text or a list of named ones;
// - chat_template.json, which processors of images and sounds have.
std::vector<NamedTemplate> chat_templates_in(const std::filesystem::path& folder);

// The files that are searched, for messages about a folder that has none of them.
inline constexpr const char* kChatTemplateFiles =
    "chat_template.jinja, no chat_template in its tokenizer_config.json, and no chat_template.json";

}  // namespace fp8kv
