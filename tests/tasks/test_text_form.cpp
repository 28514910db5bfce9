// Items of the task "generate", and the grades of their texts.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "tasks/items/answer_pattern.h"
#include "tasks/items/text_form.h"

using namespace fp8kv;

namespace {

TextItem text_item(const std::string& members) {
  return read_text_item(Json::parse_line("{" + members + "}", 3, "'items.jsonl'"));
}

bool is_right(const std::string& members, const std::string& text) {
  return grade_text(text_item(R"("prompt": "a", )" + members), text).right[0] != 0;
}

AnswerPattern::Found found_in(const std::string& text, const std::string& regex,
                              AnswerPattern::Which which = AnswerPattern::Which::first) {
  return AnswerPattern(regex, "it").find(text, which);
}

}  // namespace

TEST_CASE("text form: options of an item have their places, and defaults") {
  const TextItem item = text_item(
      R"("prompt": "a b", "answer": 18, "stop": ["x", "yz"], "max_tokens": 7, "subject": "s")");
  CHECK(item.prompt == "a b");
  CHECK(item.answer == "18");
  CHECK(item.stops == std::vector<std::string>{"x", "yz"});
  CHECK(item.max_tokens == 7);
  CHECK(item.subject == "s");
  CHECK(text_item(R"("prompt": "a", "answer": "b", "stop": "\n")").stops[0] == "\n");
  CHECK(text_item(R"("prompt": "a", "answer": "b")").max_tokens == 256);
  CHECK(text_item(R"("messages": [{"role": "user", "content": "a"}], "answer": "b")").messages);
}

TEST_CASE("text form: the text, the match or its group is the answer") {
  CHECK(is_right(R"("answer": " yes")", "\n yes \n"));
  CHECK(!is_right(R"("answer": "yes")", "yes."));
  CHECK(is_right(R"("pattern": "\\d+")", "it is 12"));
  CHECK(!is_right(R"("pattern": "^\\d+")", "it is 12"));
  CHECK(is_right(R"j("pattern": "is (\\d+)", "answer": "12")j", "it is 12 or is 13"));
  CHECK(!is_right(R"j("pattern": "is (\\d+)", "answer": "13")j", "it is 12 or is 13"));
  CHECK(is_right(R"j("pattern": "(?s).*is (\\d+)", "answer": 13)j", "it is 12 or\n is 13"));
  const TextItem item = text_item(R"("prompt": "a", "pattern": "(a+)+$")");
  CHECK(grade_text(item, "b").answers[0] == "[no match]");
  CHECK(grade_text(item, std::string(40, 'a') + "b").answers[0] == "[too many steps]");
}

TEST_CASE("answer pattern: the first group that is not empty counts, or else the match") {
  CHECK(found_in("x=12;", "(y=\\d+)|x=(\\d+)").text == "12");
  CHECK(found_in("x=12;", "x=\\d+").text == "x=12");
  CHECK(found_in("x=12;", "(q*)x").text.empty());
  CHECK(found_in("1 22 3", "\\d+", AnswerPattern::Which::last).text == "3");
  CHECK(found_in("é1é", "1|$", AnswerPattern::Which::last).text.empty());
  CHECK(found_in("\xD9\xA3", "^\\d$").outcome == AnswerPattern::Outcome::found);  // U+0663
  CHECK(found_in("a\rb", "^a.b$").outcome == AnswerPattern::Outcome::found);
  CHECK(found_in("", "a").outcome == AnswerPattern::Outcome::none);
}

TEST_CASE("text form: an odd item is refused with its line and the way it is odd") {
  const auto refused = [](const std::string& members, const std::string& message) {
    CAPTURE(members);
    CHECK(test::error_of([&] { text_item(members); }) == "'items.jsonl':3: " + message);
  };
  refused(R"("answer": "b")", "has none of 'prompt' and 'messages', expected one");
  refused(R"("prompt": "a", "messages": [], "answer": "b")",
          "has both of 'prompt' and 'messages', expected one");
  refused(R"("prompt": "a")", "has none of 'answer' and 'pattern'");
  refused(R"("prompt": "", "answer": "b")", "prompt: is empty");
  refused(R"("prompt": "a", "answer": " ")", "answer: is empty");
  refused(R"("prompt": "a", "answer": [1])", "answer: is an array ([1]), expected a string");
  refused(R"("prompt": "a", "answer": "b", "stop": "")",
          "stop: is an empty string, which is everywhere");
  refused(R"("prompt": "a", "answer": "b", "stop": [1])",
          "stop[0]: is a number (1), expected a string");
  refused(R"("prompt": "a", "answer": "b", "max_tokens": 0)",
          "max_tokens: is 0, expected an integer from 1 to 2147483647");
  refused(R"("prompt": "a", "answer": "b", "until": "\n")", "has no field 'until', only 'stop'");
  refused(R"("prompt": "a", "pattern": "(b")",
          "pattern: the pattern '(b' cannot be compiled: missing closing parenthesis (at byte 2)");
  refused(R"("prompt": "a", "pattern": ")" + std::string(5000, 'a') + "\"",
          "pattern: the pattern has 5000 bytes, expected at most 4096");
}
