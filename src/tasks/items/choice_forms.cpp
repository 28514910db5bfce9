#include "tasks/items/choice_forms.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "tasks/items/python_text.h"

namespace fp8kv {
namespace {

std::vector<std::string> texts_of(const Json& array) {
  if (!array.is_array()) fail(array.where(), ": is ", array.brief(), ", expected an array");
  std::vector<std::string> texts;
  for (size_t i = 0; i < array.size(); ++i) texts.push_back(array[i].as_string());
  return texts;
}

// Reads an index from 0, written as a number or as a string of digits. Throws unless it is below n.
size_t index_of(const Json& value, size_t n) {
  int64_t index = -1;
  if (value.is_string()) {
    const std::string& text = value.as_string();
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) index = -1;
  } else {
    index = value.as_int();
  }
  if (index < 0 || static_cast<size_t>(index) >= n) {
    fail(value.where(), ": is ", value.brief(), ", expected the number of a choice from 0 to ",
         n - 1);
  }
  return static_cast<size_t>(index);
}

size_t place_of(const Json& value, const std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, value.as_string());
  if (found == names.end()) {
    fail(value.where(), ": is ", value.brief(), ", expected one of the item's choices");
  }
  return static_cast<size_t>(found - names.begin());
}

// Reads an item whose prompt lists the choices and whose answers are their letters, from A.
ChoiceItem read_lettered(const Json& record) {
  ChoiceItem item;
  item.subject = record.get_string("subject", "");
  const std::vector<std::string> choices = texts_of(record.at("choices"));
  constexpr size_t kLetters = 26;
  if (choices.size() > kLetters) {
    fail(record.at("choices").where(), ": has ", choices.size(), " choices, expected at most ",
         kLetters);
  }
  item.prompt = stripped(record.at("question").as_string());
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string letter(1, static_cast<char>('A' + i));
    item.prompt += cat("\n", letter, ". ", choices[i]);
    item.choices.push_back(letter);
  }
  item.prompt += "\nAnswer:";
  item.answer = index_of(record.at("answer"), choices.size());
  return item;
}

ChoiceItem read_keyed(const Json& record) {
  ChoiceItem item;
  const Json choices = record.at("choices");
  item.prompt = cat("Question: ", record.at("question").as_string(), "\nAnswer:");
  item.choices = texts_of(choices.at("text"));
  const std::vector<std::string> labels = texts_of(choices.at("label"));
  if (labels.size() != item.choices.size()) {
    fail(choices.where(), ": has ", item.choices.size(), " texts and ", labels.size(), " labels");
  }
  item.answer = place_of(record.at("answerKey"), labels);
  return item;
}

// Removes text in square brackets, which is left over from pages of WikiHow.
std::string without_brackets(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('[', at), text.size());
    const size_t line_end = std::min(text.find('\n', open), text.size());
    const size_t close = text.find(']', open);
    const bool is_pair = close != text.npos && close < line_end;
    out += text.substr(at, open - at);
    if (open < text.size() && !is_pair) out += '[';
    at = is_pair ? close + 1 : open + 1;
  }
  return out;
}

std::string cleaned(std::string_view text) {
  return replaced(without_brackets(replaced(stripped(text), " [title]", ". ")), "  ", " ");
}

ChoiceItem read_ending(const Json& record) {
  ChoiceItem item;
  const std::string context = record.has("ctx_a") ? cat(record.at("ctx_a").as_string(), " ",
                                                        capitalized(record.get_string("ctx_b", "")))
                                                  : record.at("ctx").as_string();
  item.prompt = cleaned(cat(record.at("activity_label").as_string(), ": ", context));
  for (const std::string& each : texts_of(record.at("endings"))) {
    item.choices.push_back(cleaned(each));
  }
  item.answer = index_of(record.at("label"), item.choices.size());
  return item;
}

// Reads the choices and the answer that belong to a prompt or to messages.
ChoiceItem read_choices(const Json& record) {
  ChoiceItem item;
  item.choices = texts_of(record.at("choices"));
  const Json answer = record.at("answer");
  item.answer =
      answer.is_string() ? place_of(answer, item.choices) : index_of(answer, item.choices.size());
  return item;
}

ChoiceItem read_general(const Json& record) {
  if (record.has("messages")) fail(record.where(), ": has both 'prompt' and 'messages'");
  ChoiceItem item = read_choices(record);
  item.prompt = record.at("prompt").as_string();
  return item;
}

ChoiceItem read_chat(const Json& record) {
  ChoiceItem item = read_choices(record);
  item.messages = record;
  return item;
}

struct ChoiceRow {
  ChoiceForm form;
  ChoiceItem (*read)(const Json& record);
};

// The forms, in the order in which a record is compared with them.
const std::array<ChoiceRow, 5>& choice_rows() {
  static const std::array<ChoiceRow, 5> kRows = {{
      {{"hellaswag", {"activity_label", "endings", "label"}, true}, read_ending},
      {{"arc", {"question", "choices", "answerKey"}, true}, read_keyed},
      {{"mmlu", {"question", "choices", "answer"}}, read_lettered},
      {{"general", {"prompt", "choices", "answer"}}, read_general},
      {{"chat", {"messages", "choices", "answer"}}, read_chat},
  }};
  return kRows;
}

const ChoiceRow* find_row(const Json& record) {
  for (const ChoiceRow& row : choice_rows()) {
    if (std::ranges::all_of(row.form.fields, [&](const auto& field) { return record.has(field); }))
      return &row;
  }
  return nullptr;
}

const ChoiceRow& choice_row_of(const Json& record) {
  if (!record.is_object()) fail(record.where(), ": is ", record.brief(), ", expected an object");
  if (const ChoiceRow* row = find_row(record)) return *row;
  std::vector<std::string> known;
  for (const ChoiceRow& row : choice_rows()) {
    std::string fields;
    for (const std::string& each : row.form.fields) fields += (fields.empty() ? "" : "+") + each;
    known.push_back(cat(fields, " (", row.form.name, ")"));
  }
  std::vector<std::string> found;
  for (size_t i = 0; i < record.size(); ++i) found.push_back(quote(record.key(i)));
  fail(record.where(), ": is no item of a multiple choice task: has ",
       found.empty() ? "no field" : join(found), ", expected ", join(known, " or "));
}

void check_choices(const Json& record, const ChoiceItem& item) {
  if (item.choices.size() < 2) {
    fail(record.where(), ": has ", count_of(item.choices.size(), "choice"),
         ", expected at least 2");
  }
  for (size_t i = 0; i < item.choices.size(); ++i) {
    if (item.choices[i].empty()) fail(record.where(), ": choice ", i, " is empty");
  }
  if (!item.messages && item.prompt.empty()) fail(record.where(), ": the prompt is empty");
}

}  // namespace

const ChoiceForm& choice_form_of(const Json& record) {
  return choice_row_of(record).form;
}

ChoiceItem read_choice_item(const Json& record) {
  ChoiceItem item = choice_row_of(record).read(record);
  item.where = record.where();
  check_choices(record, item);
  return item;
}

}  // namespace fp8kv
