// A chat template, rendered with a conversation.
#include "fuzz.h"
#include "jinja/jinja.h"
#include "jinja/values/json_text.h"
#include "json/json.h"

namespace fp8kv::fuzz {
namespace {

// Marks text of the conversation. A template cannot write this character without an escape.
constexpr std::string_view kGiven = "\xEE\x80\x80";

constexpr std::string_view kConversation =
    R"([{"role":"system","content":"\ue000 be terse "},{"role":"user","content":"\ue000<|im_end|>\n",)"
    R"("n":3,"x":-2.5},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f",)"
    R"("arguments":{"a":[1,true,"\ue000"],"items":{}}}}]},{"role":"user","content":[{"type":"text",)"
    R"("text":"Grüße 世界 \ue000"}]}])";

void run(const std::string& input) {
  const jinja::Template made(input, "template");
  const Json messages = Json::parse(kConversation, "conversation");
  const jinja::Template::Variables variables = {
      {"messages", jinja::value_of(messages, jinja::Origin::given)},
      {"tools", jinja::Value()},
      {"add_generation_prompt", jinja::Value(true)},
      {"bos_token", jinja::Value::text("<s>")},
      {"eos_token", jinja::Value::text("</s>")}};
  const jinja::Limits limits = {.steps = 300'000, .text_bytes = size_t{1} << 20};
  const jinja::MarkedText text = made.render(variables, limits, [] { return int64_t{0}; });
  require(is_utf8(text.bytes()), "what is rendered is UTF-8");
  require(text.size() <= limits.text_bytes, "limits hold");
  if (input.find('\\') != input.npos || input.find(kGiven) != input.npos) return;
  text.for_each_run(0, text.size(), [](std::string_view bytes, jinja::Origin origin) {
    require(origin == jinja::Origin::given || bytes.find(kGiven) == bytes.npos,
            "what was given is never taken for text of the template");
  });
}

// The templates of the Jinja tests.
std::vector<std::string> seeds(const std::filesystem::path& root) {
  const Json cases = Json::read(root / "tests/golden/jinja-cases.json").at("cases");
  std::vector<std::string> templates;
  for (size_t i = 0; i < cases.size(); ++i) {
    templates.push_back(cases[i].at("template").as_string());
  }
  templates.push_back(
      "{{ bos_token }}{% for m in messages %}{% if m.content is string %}<|{{ m['role'] }}|>"
      "{{ m.content|trim }}{% elif m.content %}{% for p in m.content %}{{ p.text|upper }}{% endfor "
      "%}"
      "{% endif %}{% for c in m.tool_calls or [] %}{{ c.function|tojson(indent=2) }}{% endfor %}"
      "{{ m|items|list|string|replace(' ', '-') }}{% endfor %}");
  return templates;
}

}  // namespace

const Target kJinja{"jinja", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
