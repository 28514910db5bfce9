#include <doctest/doctest.h>

#include "base/error.h"
#include "jinja/jinja.h"
#include "jinja/values/json_text.h"
#include "json/json.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using jinja::Origin;
using jinja::Template;
using jinja::Value;

// Renders `source`. `given` is a JSON object of variables.
jinja::MarkedText render(const std::string& source, const std::string& given,
                         const jinja::Limits& limits = {}) {
  const Json members = Json::parse(given, "given");
  Template::Variables variables;
  for (size_t i = 0; i < members.size(); ++i) {
    variables.emplace_back(members.key(i), jinja::value_of(members.value(i), Origin::given));
  }
  return Template(source, "t.jinja").render(variables, limits, [] { return int64_t{0}; });
}

// The rendered text, with « and » around text that came from the variables.
std::string marked(const std::string& source, const std::string& given) {
  const jinja::MarkedText text = render(source, given);
  std::string out;
  text.for_each_run(0, text.size(), [&](std::string_view bytes, Origin origin) {
    out += origin == Origin::given ? cat("«", bytes, "»") : std::string(bytes);
  });
  return out;
}

std::string refusal(const std::string& source, const std::string& given = "{}",
                    const jinja::Limits& limits = {}) {
  return test::error_of([&] { render(source, given, limits); });
}

// A conversation as large as the input of a template can become.
std::string conversation_of(size_t messages) {
  std::string given = R"({"messages":[)";
  for (size_t i = 0; i < messages; ++i) {
    given += cat(i > 0 ? "," : "", R"({"role":")", i % 2 == 0 ? "user" : "assistant",
                 R"(","content":"some words of message )", i, R"("})");
  }
  return given + "]}";
}

}  // namespace

TEST_CASE("jinja: text that was given is told from text of the template through all of its ways") {
  const std::string given = R"({"u":" <|im_end|> ","d":{"k":["v"]},"l":["a","b"]})";
  const auto of = [&](const std::string& expression) {
    return marked("{{ " + expression + " }}", given);
  };
  CHECK(of("'<' + u + '>'") == "<« <|im_end|> »>");
  CHECK(of("'<' ~ u|trim ~ 5") == "<«<|im_end|>»5");
  CHECK(of("u|upper|trim") == "«<|IM_END|>»");
  CHECK(of("u.strip()[2:-2]") == "«im_end»");
  CHECK(of("(u ~ 'x' ~ u)[::-1]|trim") == "«>|dne_mi|< »x« >|dne_mi|<»");
  CHECK(of("u|replace('im_', 'you_')") == "« <|»you_«end|> »");
  CHECK(of("'<|im_end|>'|replace('im', u|trim)") == "<|«<|im_end|>»_end|>");
  CHECK(of("'a,b'.split(',')|join(u|trim)") == "a«<|im_end|>»b");
  CHECK(of("l|join(', ')") == "«a», «b»");
  CHECK(of("u.split('|')") == "['« <»', '«im_end»', '«> »']");
  CHECK(of("d|tojson") == R"({"«k»": ["«v»"]})");
  CHECK(of("d") == "{'«k»': ['«v»']}");
  CHECK(of("'[%s|%5s]' % (l[0], l[1])") == "[«a»|    «b»]");
  CHECK(of("'{}-{x}'.format(l[0], x=1)") == "«a»-1");
  CHECK(of("(u|trim ~ '\n' ~ l[0])|indent(1, true)") == " «<|im_end|>»\n «a»");
  CHECK(of("u|trim|capitalize ~ l[0]|title ~ l[0].center(3)") == "«<|im_end|>A» «a» ");
  CHECK(of("(u|trim|safe) + '<'") == "«<|im_end|>»&lt;");
  CHECK(of("u|trim|truncate(6, true, '...', 0)") == "«<|i»...");
  CHECK(of("l|first ~ l|last ~ u|trim|list|first") == "«ab<»");
  CHECK(marked("{% set x %}<{{ u }}>{% endset %}{% macro m(y) %}[{{ y }}]{% endmacro %}"
               "{{ m(x) }}{% filter trim %} {{ l[0] }}{% endfilter %}",
               given) == "[<« <|im_end|> »>]«a»");
  CHECK(marked("{% for c in l[0] ~ 'z' %}{{ c }}.{% endfor %}", given) == "«a».z.");
}

TEST_CASE("jinja: errors name the template, the line and what was found") {
  CHECK(refusal("a\n{{ x.y }}") == "t.jinja: line 2: 'x' is undefined");
  CHECK(refusal("{% set a = 1 %}\n\n{{ a +\n 'b' }}").starts_with("t.jinja: line 3: "));
  CHECK(refusal("{{ raise_exception('no ' ~ n) }}", R"({"n":5})") ==
        "t.jinja: line 1: the template says: no 5");
  CHECK(refusal("{% if x %}\n") == "t.jinja: line 1: the template ends where 'endif' is expected");
  CHECK(refusal("\n{% include 'x' %}") ==
        "t.jinja: line 2: 'include' is not supported: a chat template stands alone");
  CHECK(refusal("{{ 'a' | urlize }}") == "t.jinja: line 1: the filter 'urlize' is not supported");
  CHECK(refusal("{{ l.append(1) }}", R"({"l":[]})") ==
        "t.jinja: line 1: access to attribute 'append' of 'list' object is unsafe: templates may "
        "not change what they are given");
  CHECK(refusal("{{ 9223372036854775807 + 1 }}") ==
        "t.jinja: line 1: a number is more than 64 bits hold");
  CHECK(refusal("{{ \"\xFF\" }}") == "t.jinja: not valid UTF-8 at byte 4");
}

// Python's results.
TEST_CASE("jinja: remainders have the sign of the divisor, to the ends of 64 bits") {
  CHECK(render("{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7 % -3 }} {{ 6 % -3 }}", "{}").bytes() ==
        "1 2 -2 -1 0");
  CHECK(render("{{ (-9223372036854775807 - 1) % 3 }}", "{}").bytes() == "1");
  CHECK(render("{{ -9223372036854775807 % 3 }}", "{}").bytes() == "2");
  CHECK(render("{{ (-9223372036854775807 - 1) % -1 }}", "{}").bytes() == "0");
  CHECK(render("{{ 9223372036854775807 % (-9223372036854775807 - 1) }}", "{}").bytes() == "-1");
}

TEST_CASE("jinja: what a template may take is limited") {
  CHECK(refusal("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
                "{}",
                {.steps = 10'000}) == "t.jinja: line 1: the template takes more than 10,000 steps");
  CHECK(refusal("{{ 'x' * 1000000000 }}") ==
        "t.jinja: line 1: the template makes a text of more than 64.0 MiB");
  CHECK(refusal("{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}"
                "{% set n.s = n.s + n.s %}{% endfor %}")
            .ends_with("the template makes a text of more than 64.0 MiB"));
  CHECK(refusal("{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}").find("more than") !=
        std::string::npos);
  CHECK(refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}") ==
        "t.jinja: line 1: the template goes more than 400 levels deep");
  CHECK(refusal("{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}"
                "{% endfor %}") ==
        "t.jinja: line 1: lists and dicts are more than 100 levels deep");
  CHECK(refusal("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}") ==
        "t.jinja: line 1: an expression of more than 200 levels");
  CHECK(refusal("{{ " + std::string(5000, '-') + "1 }}") ==
        "t.jinja: line 1: an expression of more than 200 levels");
  std::string ifs;
  for (int i = 0; i < 5000; ++i) ifs += "{% if x %}";
  CHECK(refusal(ifs) == "t.jinja: line 1: more than 100 statements in each other");
  // Comparing each list every time that it is reached would compare 2^60 lists.
  CHECK(refusal(
            "{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}"
            "{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
            "{}",
            {.steps = 100'000}) == "t.jinja: line 1: the template takes more than 100,000 steps");
}

TEST_CASE("jinja: every loop over a text, a list or members costs steps") {
  // Runs `source` in a loop, and checks that its work counts as steps, whatever it returns.
  const auto is_counted = [](const std::string& before, const std::string& source) {
    const std::string repeated =
        before + "{% for i in range(300) %}{% set x = " + source + " %}{% endfor %}";
    CAPTURE(source);
    // Making the texts alone is within the limit; the loop is not.
    CHECK_NOTHROW(render(before, "{}", {.steps = 150'000}));
    CHECK(refusal(repeated, "{}", {.steps = 150'000}).find("more than 150,000 steps") !=
          std::string::npos);
  };
  const std::string text = "{% set t = 'ab' * 100000 %}";
  for (const char* source : {"'c' in t",
                             "t.find('c')",
                             "t.rfind('c')",
                             "t.count('c')",
                             "t.partition('c')",
                             "t.rpartition('c')",
                             "t.split('c')",
                             "t.rsplit('c', 1)",
                             "t.replace('c', 'd')",
                             "t|int",
                             "t|float",
                             "t|truncate(9999999)",
                             "t.isascii()",
                             "t|length",
                             "t|wordcount",
                             "t.startswith(t)",
                             "t.endswith((t, t))",
                             "t == t ~ ''",
                             "[1][t]",
                             "[{}]|map(attribute=t)|list",
                             "[{}, {}]|sort(attribute=t)",
                             "'x'.strip(t)",
                             "'x' * 3 in t"}) {
    is_counted(text, source);
  }
  is_counted("{% set t = 'ab' * 1000 %}", "t.strip('ba' ~ t)");
  is_counted("{% set d = {'a' * 100000: 1} %}{% set k = 'a' * 99999 ~ 'b' %}", "d[k]");
  is_counted("{% set n = [1] * 10000 %}", "n == n + [1] - 0 if false else n|join|length");
}

TEST_CASE("jinja: a tuple of tuples as a key is looked at within the limit") {
  // Hashing each tuple every time that it is reached would hash 2^60 tuples.
  CHECK(refusal("{% set n = namespace(a=(1,)) %}{% for i in range(60) %}{% set n.a = (n.a, n.a) %}"
                "{% endfor %}{{ {n.a: 1} }}",
                "{}", {.steps = 100'000})
            .ends_with("takes more than 100,000 steps"));
}

TEST_CASE("jinja: separators of tojson are text that is made") {
  CHECK(refusal("{{ ([1] * 1000)|tojson(separators=('x' * 1000000, ':')) }}")
            .ends_with("makes a text of more than 64.0 MiB"));
}

TEST_CASE("jinja: twice the conversation takes at most about twice the steps") {
  const std::string source =
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content']|trim + "
      "'<|im_end|>' }}{% endfor %}";
  const auto fits = [&](size_t messages, uint64_t steps) {
    try {
      render(source, conversation_of(messages), {.steps = steps});
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  uint64_t steps = 1000;
  while (!fits(1000, steps)) steps += steps / 8;
  CHECK(fits(2000, 2 * steps + steps / 4));
}

TEST_CASE("jinja: what the template may write itself is known") {
  const Template made("a{{ 'b' ~ x['c'] }}{# d #}{% if y == 'e' %}f{% endif %}", "t.jinja");
  CHECK(made.literals() == std::string("a\0b\0c\0e\0f\0", 10));
}

}  // namespace fp8kv
