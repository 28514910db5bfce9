// Prompts of published multiple choice tasks. Expected texts follow the templates of
// lm-evaluation-harness 0.4.13. For HellaSwag its code made the expected text from the record.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "tasks/items/choice_forms.h"
#include "tasks/items/few_shot.h"
#include "tasks/items/python_text.h"

using namespace fp8kv;

namespace {

ChoiceItem item_of(const std::string& record) {
  return read_choice_item(Json::parse_line(record, 3, "'items.jsonl'"));
}

constexpr const char* kMmlu = R"({"question": " What is 2 + 2? ", "subject": "abstract_algebra",)"
                              R"( "choices": ["3", "4", "5", "6"], "answer": 1})";
constexpr const char* kArc =
    R"({"id": "a", "question": "Which is hot?", "choices": {"text": ["ice", "the sun", "snow"],)"
    R"( "label": ["1", "2", "3"]}, "answerKey": "2"})";
constexpr const char* kHellaSwag =
    R"({"activity_label": "Cooking", "ctx_a": "A man [title] stands. [step] He cuts.",)"
    R"( "ctx_b": "the Man", "ctx": "unused", "endings": ["eats  it.", " [header] sleeps. "],)"
    R"( "label": "1"})";

}  // namespace

TEST_CASE("choice forms: MMLU asks for a letter") {
  const ChoiceItem item = item_of(kMmlu);
  CHECK(item.prompt == "What is 2 + 2?\nA. 3\nB. 4\nC. 5\nD. 6\nAnswer:");
  CHECK(item.choices == std::vector<std::string>{"A", "B", "C", "D"});
  CHECK(item.answer == 1);
  CHECK(item.where == "'items.jsonl':3");
  CHECK(description_of(item) ==
        "The following are multiple choice questions (with answers) about abstract algebra.\n\n");
}

TEST_CASE("choice forms: ARC has the label of the right text") {
  const ChoiceItem item = item_of(kArc);
  CHECK(item.prompt == "Question: Which is hot?\nAnswer:");
  CHECK(item.choices == std::vector<std::string>{"ice", "the sun", "snow"});
  CHECK(item.answer == 1);
}

TEST_CASE("choice forms: HellaSwag loses its brackets and double blanks") {
  const ChoiceItem item = item_of(kHellaSwag);
  CHECK(item.prompt == "Cooking: A man. stands. He cuts. The man");
  CHECK(item.choices == std::vector<std::string>{"eats it.", " sleeps."});
  CHECK(item.answer == 1);
}

TEST_CASE("choice forms: a general item has its answer as an index or as a text") {
  CHECK(item_of(R"({"prompt": "a", "choices": ["x", "y"], "answer": "y"})").answer == 1);
  CHECK(item_of(R"({"prompt": "a", "choices": ["x", "y"], "answer": 0})").answer == 0);
}

TEST_CASE("choice forms: a chat keeps its messages, and each choice is an answer") {
  const ChoiceItem item = item_of(R"({"messages": [{"role": "user", "content": "Hot?"}],)"
                                  R"( "choices": ["Ice.", "The sun."], "answer": 1})");
  CHECK(item.messages->at("messages")[0].at("content").as_string() == "Hot?");
  CHECK(item.prompt == "");
  CHECK(item.choices == std::vector<std::string>{"Ice.", "The sun."});
  CHECK(item.answer == 1);
}

TEST_CASE("choice forms: an odd item is refused with its line and the way it is odd") {
  const auto refused = [](const std::string& record, const std::string& message) {
    CAPTURE(record);
    const std::string error = test::error_of([&] { item_of(record); });
    CHECK(error.substr(0, 15 + message.size()) == "'items.jsonl':3" + message);
  };
  refused(R"([1])", ": is [1], expected an object");
  refused(R"({"text": "a"})", ": is no item of a multiple choice task: has 'text', expected");
  refused(R"({"prompt": "a", "choices": ["x", "y"], "answer": 2})",
          ": answer: is 2, expected the number of a choice from 0 to 1");
  refused(R"({"prompt": "a", "choices": ["x", "y"], "answer": "z"})",
          R"(: answer: is "z", expected one of the item's choices)");
  refused(R"({"prompt": "a", "choices": ["x"], "answer": 0})",
          ": has 1 choice, expected at least 2");
  refused(R"({"prompt": "a", "choices": ["x", ""], "answer": 0})", ": choice 1 is empty");
  refused(R"({"prompt": "", "choices": ["x", "y"], "answer": 0})", ": the prompt is empty");
  refused(R"({"prompt": "a", "messages": [], "choices": ["x", "y"], "answer": 0})",
          ": has both 'prompt' and 'messages'");
  refused(R"({"question": "a", "choices": ["x", "y"], "answer": "B"})",
          R"(: answer: is "B", expected the number of a choice from 0 to 1)");
}

TEST_CASE("few-shot: examples of the subject come before the item, with their answers") {
  const ChoiceItem item = item_of(kArc);
  const std::vector<Example> examples = {
      example_of("abstract_algebra", "other", "A"),
      example_of(item.subject, item.prompt, item.choices[item.answer]),
      example_of(item.subject, "b", "c")};
  const auto before = [&](size_t count) {
    return few_shot_text(item.where, item.subject, examples, count);
  };
  CHECK(before(0).empty());
  CHECK(before(1) == "Question: Which is hot?\nAnswer: the sun\n\n");
  CHECK(before(2) == before(1) + "b c\n\n");
  CHECK(test::error_of([&] { before(3); }) ==
        "'items.jsonl':3: --few-shot asks for 3 examples, and 2 are there");
}

TEST_CASE("few-shot: blanks at the end of a prompt are encoded with the choice") {
  const EncodeText by_bytes = [](std::string_view text) {
    std::vector<int32_t> ids = {1};  // stands for a BOS
    for (const char c : text) ids.push_back(c);
    return ids;
  };
  ChoiceItem item;
  item.choices = {"x", "yz"};
  const Alternatives made = encode_choices(item, "ab \n", by_bytes);
  REQUIRE(made.size() == 2);
  CHECK(made[0].begin == 3);
  CHECK(made[1].begin == 3);
  CHECK(made[1].ids == std::vector<int32_t>{1, 'a', 'b', ' ', '\n', ' ', 'y', 'z'});
}

TEST_CASE("python text: strip, capitalize, replace and len are Python's") {
  CHECK(stripped("\t\xC2\xA0 a b \x1c") == "a b");
  CHECK(stripped(" \n").empty());
  CHECK(capitalized("\xC3\xA9T\xC3\x89") == "\xC3\x89t\xC3\xA9");  // "éTÉ" -> "Été"
  CHECK(replaced("a  b    c", "  ", " ") == "a b  c");
  CHECK(count_characters("\xC3\xA9t\xE2\x82\xAC") == 3);
}
