#include "tasks/items/text_form.h"

#include <limits>

#include "base/error.h"
#include "tasks/items/python_text.h"

namespace fp8kv {
namespace {

// The names that other tools use for our fields.
struct OptionAlias {
  const char* name;
  const char* ours;
};
constexpr OptionAlias kAliases[] = {
    {"until", "stop"},
    {"stop_sequences", "stop"},
    {"stop_strings", "stop"},
    {"max_new_tokens", "max_tokens"},
    {"max_gen_toks", "max_tokens"},
    {"max_completion_tokens", "max_tokens"},
    {"regex", "pattern"},
    {"target", "answer"},
    {"expected", "answer"},
};

void check_aliases(const Json& record) {
  for (const OptionAlias& each : kAliases) {
    if (!record.has(each.name) || record.has(each.ours)) continue;
    throw Error(
        cat(record.where(), ": has no field ", quote(each.name), ", only ", quote(each.ours)),
        cat("rename it to ", quote(each.ours)));
  }
}

void read_asked(const Json& record, TextItem& item) {
  const bool has_prompt = record.has("prompt");
  if (has_prompt == record.has("messages")) {
    fail(record.where(), ": has ", has_prompt ? "both" : "none", " of 'prompt' and 'messages'",
         ", expected one");
  }
  if (!has_prompt) {
    item.messages = record;
    return;
  }
  item.prompt = record.at("prompt").as_string();
  if (item.prompt.empty()) fail(record.at("prompt").where(), ": is empty");
}

void read_expected(const Json& record, TextItem& item) {
  const auto answer = record.find("answer"), pattern = record.find("pattern");
  if (!answer && !pattern) {
    throw Error(cat(record.where(), ": has none of 'answer' and 'pattern'"),
                "write what the text must be as answer, or what it must match as pattern");
  }
  if (answer) {
    const std::string text = answer->is_number() ? answer->number_text() : answer->as_string();
    item.answer = stripped(text);
    if (item.answer.empty()) fail(answer->where(), ": is empty");
  }
  if (!pattern) return;
  item.pattern_text = pattern->as_string();
  if (item.pattern_text.empty()) fail(pattern->where(), ": is empty");
  item.pattern.emplace(item.pattern_text, pattern->where());
}

void add_stop_string(const Json& text, TextItem& item) {
  item.stops.push_back(text.as_string());
  if (item.stops.back().empty()) fail(text.where(), ": is an empty string, which is everywhere");
}

}  // namespace

TextItem read_text_item(const Json& record) {
  if (!record.is_object()) fail(record.where(), ": is ", record.brief(), ", expected an object");
  TextItem item;
  item.where = record.where();
  item.subject = record.get_string("subject", "");
  check_aliases(record);
  read_asked(record, item);
  read_expected(record, item);
  if (const auto stop = record.find("stop")) {
    if (!stop->is_array()) add_stop_string(*stop, item);
    for (size_t i = 0; i < stop->size(); ++i) add_stop_string((*stop)[i], item);
  }
  if (const auto most = record.find("max_tokens")) {
    item.max_tokens = most->as_int();
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (item.max_tokens < 1 || item.max_tokens > kMost) {
      fail(most->where(), ": is ", item.max_tokens, ", expected an integer from 1 to ", kMost);
    }
  }
  return item;
}

TextGrade grade_text(const TextItem& item, std::string_view text) {
  if (!item.pattern) {
    const std::string_view own = stripped(text);
    return {{static_cast<uint8_t>(own == item.answer)}, {std::string(own)}};
  }
  const AnswerPattern::Found found = item.pattern->find(text);
  if (found.outcome == AnswerPattern::Outcome::gave_up) return {{0}, {"[too many steps]"}};
  if (found.outcome == AnswerPattern::Outcome::none) return {{0}, {"[no match]"}};
  const std::string_view own = stripped(found.text);
  return {{static_cast<uint8_t>(item.answer.empty() || own == item.answer)}, {std::string(own)}};
}

}  // namespace fp8kv
