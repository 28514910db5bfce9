#include <algorithm>
#include <ctime>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "files/file.h"
#include "jinja/jinja.h"
#include "jinja/values/json_text.h"
#include "json/json.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

// 2026-07-04 12:00:00, local time.
int64_t noon() {
  std::tm when{};
  when.tm_year = 126;
  when.tm_mon = 6;
  when.tm_mday = 4;
  when.tm_hour = 12;
  when.tm_isdst = -1;
  return std::mktime(&when);
}

jinja::Template::Variables variables_of(const Json& messages, bool add_generation_prompt) {
  using jinja::Value;
  return {{"messages", jinja::value_of(messages, jinja::Origin::given)},
          {"tools", Value()},
          {"documents", Value()},
          {"add_generation_prompt", Value(add_generation_prompt)},
          {"bos_token", Value::text("<s>")},
          {"eos_token", Value::text("</s>")},
          {"unk_token", Value::text("<unk>")},
          {"pad_token", Value::text("<pad>")}};
}

// "" if the rendering equals the recorded one.
std::string difference(const jinja::Template& made, const Json& conversations, const Json& wanted) {
  const std::string name = wanted.at("conversation").as_string();
  const bool prompt = wanted.at("add_generation_prompt").as_bool();
  const auto variables = variables_of(conversations.at(name), prompt);
  try {
    const jinja::MarkedText text = made.render(variables, {}, noon);
    if (wanted.has("error")) {
      return cat(name, ": no error, expected: ", wanted.at("error").as_string());
    }
    if (text.bytes() == wanted.at("text").as_string()) return "";
    return cat(name, ":\n", text.bytes(), "\nexpected:\n", wanted.at("text").as_string());
  } catch (const Error& error) {
    return wanted.has("error") ? "" : cat(name, ": ", error.what());
  }
}

}  // namespace

TEST_CASE("jinja: published templates render what Jinja2 renders, or are an error where it errs") {
  const auto folder = test::shared_data("chat-templates");
  if (!folder) return;
  const Json conversations = Json::read(*folder / "conversations.json");
  std::vector<std::filesystem::path> templates;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() == ".jinja") templates.push_back(entry.path());
  }
  std::sort(templates.begin(), templates.end());
  size_t renderings = 0;
  for (const std::filesystem::path& path : templates) {
    const std::string name = path.filename().string();
    const jinja::Template made(read_text(path), name);
    std::filesystem::path recorded = path;
    const Json wanted = Json::read(recorded.replace_extension(".json"));
    for (size_t i = 0; i < wanted.size(); ++i, ++renderings) {
      INFO(name);
      CHECK(difference(made, conversations, wanted[i]) == "");
    }
  }
  CHECK(templates.size() >= 79);
  CHECK(renderings == 22 * templates.size());
}

}  // namespace fp8kv
