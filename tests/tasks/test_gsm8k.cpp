// GSM8K is asked and graded like in lm-evaluation-harness 0.4.13. Its filters and its exact_match
// produced the rows of the table.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "tasks/items/few_shot.h"
#include "tasks/items/gsm8k.h"

using namespace fp8kv;

namespace {

TextItem gsm8k_item(const std::string& record) {
  return read_gsm8k_item(Json::parse_line(record, 3, "'gsm8k.jsonl'"));
}

struct GradedText {
  std::string text;
  std::string answer;  // the record's field "answer"
  std::string strict;
  int strict_right;
  std::string flexible;
  int flexible_right;
};

}  // namespace

TEST_CASE("gsm8k: prompts are the harness's, with examples and without") {
  const TextItem first = gsm8k_item(R"({"question": "Why  2?", "answer": "So.\n#### 2"})");
  const TextItem item = gsm8k_item(R"({"question": " 3 or 4?\n", "answer": "#### 3"})");
  CHECK(item.prompt == "Question:  3 or 4?\n\nAnswer:");
  CHECK(item.stops == std::vector<std::string>{"Question:", "</s>", "<|im_end|>"});
  CHECK(item.max_tokens == 256);
  const std::vector<Example> examples = {example_of("", first.prompt, first.answer)};
  CHECK(few_shot_text(item.where, item.subject, examples, 1) + item.prompt ==
        "Question: Why  2?\nAnswer: So.\n#### 2\n\nQuestion:  3 or 4?\n\nAnswer:");
}

TEST_CASE("gsm8k: texts are worth what the harness's filters make of them") {
  const std::vector<GradedText> rows = {
      {"so 9 * 2 = 18\n#### 18", "x\n#### 18", "18", 1, "18", 1},
      {" #### 18.", "#### 18", "18.", 1, "18.", 1},
      {"It makes $1,800.", "a #### 1800", "[invalid]", 0, "$1,800.", 1},
      {"#### 5 and #### 6", "#### 5", "5", 1, "6", 0},
      {"no number here", "#### 5", "[invalid]", 0, "[invalid]", 0},
      {"#### -3", "y #### -3", "-3", 1, "-3", 1},
      {"#### $18", "#### 18", "[invalid]", 0, "$18", 1},
      {"costs $18. Thanks.", "#### 18", "[invalid]", 0, "$18.", 1},
      {"He has 5 eggs.", "#### 5", "[invalid]", 0, "5", 1},
      {"3.50 dollars", "#### 3.50", "[invalid]", 0, "3.50", 1},
      {"one, two.", "#### 2", "[invalid]", 0, "[invalid]", 0},
      {"a ... b 7", "#### 7", "[invalid]", 0, "7", 1},
      {"7 ... b", "#### 7", "[invalid]", 0, "...", 0},
      {"#### 1,234.", "#### 1,234", "1,234.", 1, "1,234.", 1},
      {"x", "[INVALID]", "[invalid]", 1, "[invalid]", 1},
      {"18", "18", "[invalid]", 0, "18", 1},
      {"#### 18", "#### 18\n", "18", 0, "18", 0},
      {"#### 4..", "#### 4.", "4..", 0, "4..", 0},
      {"10-4=6", "#### 6", "[invalid]", 0, "6", 1},
      {"#### 12%", "#### 12", "12", 1, "12", 1},
      {"5 - -6", "#### -6", "[invalid]", 0, "-6", 1},
  };
  for (const GradedText& row : rows) {
    CAPTURE(row.text);
    TextItem item;
    item.answer = row.answer;
    const TextGrade grade = grade_gsm8k(item, row.text);
    CHECK(grade.answers == std::vector<std::string>{row.strict, row.flexible});
    CHECK(int{grade.right[0]} == row.strict_right);
    CHECK(int{grade.right[1]} == row.flexible_right);
  }
}

TEST_CASE("gsm8k: a record without a question or an answer is refused with its line") {
  const auto error = [](const std::string& record) {
    return test::error_of([&] { gsm8k_item(record); });
  };
  CHECK(error(R"({"answer": "#### 2"})") == "'gsm8k.jsonl':3: the key 'question' is missing");
  CHECK(error(R"({"question": "a", "answer": 2})") ==
        "'gsm8k.jsonl':3: answer: is a number (2), expected a string");
  CHECK(error(R"({"question": "a", "answer": ""})") == "'gsm8k.jsonl':3: answer: is empty");
  CHECK(error("[1]") == "'gsm8k.jsonl':3: is an array ([1]), expected an object");
}
