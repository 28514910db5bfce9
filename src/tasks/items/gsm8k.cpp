#include "tasks/items/gsm8k.h"

#include "base/error.h"
#include "tasks/items/python_text.h"

namespace fp8kv {
namespace {

constexpr std::string_view kMark = "#### ";
constexpr const char* kInvalid = "[invalid]";  // the answer if the text has no number

const AnswerPattern& strict_match() {
  static const AnswerPattern kPattern("#### (-?[0-9.,]+)", "strict-match");
  return kPattern;
}

// A number of one character must be a digit. Otherwise "." and "," would be numbers.
const AnswerPattern& flexible_extract() {
  static const AnswerPattern kPattern("-?[$0-9.,]{2,}|-?[0-9]+", "flexible-extract");
  return kPattern;
}

std::string found_number(const AnswerPattern::Found& found) {
  return found.outcome == AnswerPattern::Outcome::found ? found.text : kInvalid;
}

const std::string& filled(const Json& record, const char* key) {
  const Json value = record.at(key);
  if (value.as_string().empty()) fail(value.where(), ": is empty");
  return value.as_string();
}

}  // namespace

TextItem read_gsm8k_item(const Json& record) {
  TextItem item;
  item.where = record.where();
  item.prompt = cat("Question: ", filled(record, "question"), "\nAnswer:");
  item.answer = filled(record, "answer");
  item.stops = {"Question:", "</s>", "<|im_end|>"};
  return item;
}

std::string gsm8k_number(std::string_view text) {
  const std::string plain = replaced(replaced(text, ",", ""), "$", "");
  std::string_view number = plain;
  const size_t mark = number.rfind(kMark);
  if (mark != number.npos) number.remove_prefix(mark + kMark.size());
  // Python's "$" also matches before a newline at the end, so a full stop there goes too.
  const std::string_view newline = number.ends_with('\n') ? "\n" : "";
  number.remove_suffix(newline.size());
  if (number.ends_with('.')) number.remove_suffix(1);
  return lowered(cat(number, newline));
}

TextGrade grade_gsm8k(const TextItem& item, std::string_view text) {
  TextGrade grade;
  const std::string right = gsm8k_number(item.answer);
  for (const AnswerPattern::Found& found :
       {strict_match().find(text), flexible_extract().find(text, AnswerPattern::Which::last)}) {
    grade.answers.push_back(found_number(found));
    grade.right.push_back(gsm8k_number(grade.answers.back()) == right ? 1 : 0);
  }
  return grade;
}

}  // namespace fp8kv
