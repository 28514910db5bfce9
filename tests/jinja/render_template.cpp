// Renders templates for a script. `fp8kv_render_template TEMPLATE VARIABLES.json` prints the text.
// With `--lines JSONL` each line is {"template", "variables"}. For each it prints a line of JSON
// with "text" or "error".
#include <cstdio>
#include <iostream>
#include <string>

#include "base/error.h"
#include "jinja/jinja.h"
#include "jinja/values/json_text.h"
#include "json/json.h"

namespace {

using namespace fp8kv;

std::string rendered(const Json& job) {
  JsonWriter out(JsonWriter::Layout::one_line);
  out.begin_object();
  try {
    jinja::Template::Variables variables;
    const Json given = job.at("variables");
    for (size_t i = 0; i < given.size(); ++i) {
      variables.emplace_back(given.key(i), jinja::value_of(given.value(i), jinja::Origin::given));
    }
    const jinja::Template made(job.at("template").as_string(), "template");
    const jinja::MarkedText text = made.render(variables, {}, [] { return int64_t{1783166400}; });
    out.member("text", text.bytes());
  } catch (const Error& error) {
    out.member("error", std::string(error.what()));
  }
  return out.end_object().text();
}

}  // namespace

int main() {
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    std::puts(rendered(Json::parse_line(line, number, "standard input")).c_str());
  }
}
