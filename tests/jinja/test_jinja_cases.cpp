#include <doctest/doctest.h>

#include "base/error.h"
#include "jinja/jinja.h"
#include "jinja/values/json_text.h"
#include "json/json.h"
#include "support/places.h"

namespace fp8kv {
namespace {

jinja::Template::Variables variables_from(const Json& members) {
  jinja::Template::Variables variables;
  for (size_t i = 0; i < members.size(); ++i) {
    variables.emplace_back(members.key(i), jinja::value_of(members.value(i), jinja::Origin::given));
  }
  return variables;
}

}  // namespace

// tests/golden/make_jinja_vectors.py made the cases.
TEST_CASE("jinja: small templates render what Jinja2 renders, or are an error where it errs") {
  const Json recorded = Json::read(test::source_dir() / "tests/golden/jinja-cases.json");
  const auto variables = variables_from(recorded.at("variables"));
  const Json cases = recorded.at("cases");
  CHECK(cases.size() > 300);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string source = cases[i].at("template").as_string();
    CAPTURE(source);
    try {
      const jinja::Template made(source, "template");
      const jinja::MarkedText text = made.render(variables, {}, [] { return int64_t{0}; });
      CHECK_FALSE(cases[i].has("error"));
      CHECK(text.bytes() == cases[i].get_string("text", "an error"));
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(cases[i].has("error"));
    }
  }
}

}  // namespace fp8kv
