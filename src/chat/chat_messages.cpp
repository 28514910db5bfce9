#include "chat/chat_messages.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "jinja/values/json_text.h"

namespace fp8kv {
namespace {

using jinja::Origin;
using jinja::Value;
using Members = std::vector<std::pair<Value, Value>>;

// The role names of ShareGPT and its kin. Source: the data sets ShareGPT_Vicuna, OpenHermes-2.5,
// SlimOrca and ToolACE.
struct Role {
  std::string_view from;
  std::string_view role;
};
constexpr Role kRoles[] = {{"human", "user"},        {"gpt", "assistant"},
                           {"chatgpt", "assistant"}, {"bing", "assistant"},
                           {"bard", "assistant"},    {"model", "assistant"},
                           {"observation", "tool"},  {"function_response", "tool"}};

Value key_of(std::string_view name) {
  return Value::text(name);
}

const Value* find(const Members& members, std::string_view name) {
  for (const auto& [key, value] : members) {
    if (key.string()->bytes() == name) return &value;
  }
  return nullptr;
}

void put(Members& members, std::string_view name, const Value& value) {
  for (auto& [key, held] : members) {
    if (key.string()->bytes() != name) continue;
    held = value;
    return;
  }
  members.emplace_back(key_of(name), value);
}

void alias_reasoning(Members& members) {
  const Value* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    if (reasoning == nullptr) reasoning = find(members, name);
  }
  if (reasoning == nullptr) return;
  const Value value = *reasoning;
  const Value* thinking = find(members, "thinking");
  Members made = {{key_of("thinking"), thinking ? *thinking : value}};
  for (auto& member : members) {
    if (member.first.string()->bytes() != "thinking") made.push_back(std::move(member));
  }
  put(made, "reasoning_content", value);
  members = std::move(made);
}

Value plain_message(const Json& message) {
  Members members;
  for (size_t i = 0; i < message.size(); ++i) {
    if (message.value(i).is_null()) continue;
    const Value name = Value::text(jinja::MarkedText(message.key(i), Origin::given));
    members.emplace_back(name, jinja::value_of(message.value(i), Origin::given));
  }
  alias_reasoning(members);
  return Value::dict(std::move(members));
}

Value share_gpt_message(const Json& message) {
  std::string role = message.at("from").as_string();
  for (const Role& each : kRoles) {
    if (each.from == role) role = each.role;
  }
  const std::string& text = message.at("value").as_string();
  return Value::dict({{key_of("role"), Value::text(jinja::MarkedText(role, Origin::given))},
                      {key_of("content"), Value::text(jinja::MarkedText(text, Origin::given))}});
}

}  // namespace

Value chat_messages(const Json& record) {
  const Json list = record.has("messages") ? record.at("messages") : record.at("conversations");
  if (!list.is_array()) fail(list.where(), ": is ", list.brief(), ", expected an array");
  if (list.size() == 0) fail(list.where(), ": is empty, expected messages");
  std::vector<Value> messages;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json message = list[i];
    if (!message.is_object()) {
      fail(message.where(), ": is ", message.brief(), ", expected an object");
    }
    messages.push_back(message.has("from") ? share_gpt_message(message) : plain_message(message));
  }
  return Value::list(std::move(messages));
}

}  // namespace fp8kv
