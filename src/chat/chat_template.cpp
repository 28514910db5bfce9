#include "chat/chat_template.h"

#include <algorithm>

#include "base/error.h"
#include "chat/chat_messages.h"
#include "chat/template_files.h"
#include "chat/token_defaults.h"
#include "files/file.h"
#include "jinja/values/json_text.h"
#include "json/object_file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

using Variables = jinja::Template::Variables;

constexpr const char* kTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                   "pad_token", "cls_token", "mask_token"};

// Sets a token from a string, or from an object with its content. null removes the token.
void set_token(const std::string& name, const Json& value, Variables& tokens) {
  std::erase_if(tokens, [&](const auto& each) { return each.first == name; });
  if (value.is_null()) return;
  const std::string text = value.is_string() ? value.as_string() : value.at("content").as_string();
  tokens.emplace_back(name, jinja::Value::text(text));
}

void read_tokens(const Json& json, Variables& tokens) {
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string& name = json.key(i);
    if (std::find(std::begin(kTokens), std::end(kTokens), name) == std::end(kTokens)) continue;
    set_token(name, json.value(i), tokens);
  }
}

// The named tokens that transformers gives every template. special_tokens_map.json only counts for
// old models, whose tokenizer_config.json has no list of added tokens.
Variables special_tokens(const fs::path& folder) {
  Variables tokens;
  bool is_old = true;
  if (const auto json = find_object(folder / "tokenizer_config.json")) {
    for (const auto& [name, token] : token_defaults(json->get_string("tokenizer_class", ""),
                                                    fs::exists(folder / "tokenizer.json"))) {
      tokens.emplace_back(std::string(name), jinja::Value::text(std::string(token)));
    }
    read_tokens(*json, tokens);
    is_old = !json->has("added_tokens_decoder");
  }
  if (is_old) {
    if (const auto json = find_object(folder / "special_tokens_map.json"))
      read_tokens(*json, tokens);
  }
  return tokens;
}

// Finds a template by name, or else as a file.
NamedTemplate chosen(const std::vector<NamedTemplate>& there, const std::string& choice,
                     const fs::path& folder) {
  for (const NamedTemplate& each : there) {
    if (each.name == choice) return each;
  }
  if (fs::exists(choice))
    return {choice, read_text(choice), quote(choice),
            utf8_name(fs::path(choice).filename().string())};
  std::vector<std::string> names;
  for (const NamedTemplate& each : there) names.push_back(quote(each.name));
  throw Error(cat(quote(choice), " is no file, and no chat template of ", quote(folder.string()),
                  names.empty() ? "" : cat(did_you_mean(choice, names)),
                  names.empty() ? ", which has none" : cat(", which has ", join(names))),
              "name a file with a Jinja template", ErrorKind::usage);
}

const NamedTemplate& default_of(const std::vector<NamedTemplate>& there, const fs::path& folder) {
  for (const NamedTemplate& each : there) {
    if (each.name == "default") return each;
  }
  std::vector<std::string> names;
  for (const NamedTemplate& each : there) names.push_back(quote(each.name));
  throw Error(cat(quote(folder.string()), ": has the chat templates ", join(names),
                  ", and none of them is called 'default'"),
              "choose one with --chat-template NAME");
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::find_in(const fs::path& folder, const std::string& choice,
                                                  Clock clock) {
  const std::vector<NamedTemplate> there = chat_templates_in(folder);
  if (there.empty() && choice.empty()) return std::nullopt;
  const NamedTemplate found =
      choice.empty() ? default_of(there, folder) : chosen(there, choice, folder);
  return ChatTemplate(jinja::Template(found.source, found.label), found, special_tokens(folder),
                      std::move(clock));
}

jinja::MarkedText ChatTemplate::render(const Json& record, bool add_generation_prompt) const {
  Variables variables = tokens_;
  variables.emplace_back("messages", chat_messages(record));
  const auto tools = record.find("tools");
  const bool has_tools = tools && tools->is_array() && tools->size() > 0;
  variables.emplace_back(
      "tools", has_tools ? jinja::value_of(*tools, jinja::Origin::given) : jinja::Value());
  variables.emplace_back("documents", jinja::Value());
  variables.emplace_back("add_generation_prompt", jinja::Value(add_generation_prompt));
  const auto more = record.find("chat_template_kwargs");
  for (size_t i = 0; more && i < more->size() && more->is_object(); ++i) {
    const std::string& name = more->key(i);
    std::erase_if(variables, [&](const auto& each) { return each.first == name; });
    variables.emplace_back(name, jinja::value_of(more->value(i), jinja::Origin::given));
  }
  return with_context(record.where(), [&] { return template_.render(variables, {}, clock_); });
}

jinja::MarkedText ChatTemplate::render_turn(std::string_view text) const {
  JsonWriter record(JsonWriter::Layout::one_line);
  record.begin_object().key("messages").begin_array().begin_object();
  record.member("role", "user").member("content", text);
  record.end_object().end_array().end_object();
  return render(Json::parse(record.text(), "the prompt"), true);
}

}  // namespace fp8kv
