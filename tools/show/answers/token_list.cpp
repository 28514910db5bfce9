#include "show/answers/token_list.h"

#include <algorithm>

#include "base/text.h"
#include "json/json.h"

namespace fp8kv {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 8;

// Lines with ids and tokens from `begin` to before `end`. Each line starts with the number of its
// first token.
std::string token_lines(const TokenList& list, const Tokenizer& tokenizer, size_t begin,
                        size_t end) {
  std::string text;
  std::string line;
  for (size_t i = begin; i < end; ++i) {
    const std::string token = cat(list.ids[i], " ", plain(tokenizer.token(list.ids[i])));
    if (!line.empty() && line.size() + 2 + token.size() > kWidth) {
      text += line + "\n";
      line.clear();
    }
    if (line.empty()) {
      const std::string number = cat(i);
      line = std::string(kIndent - std::min(kIndent, number.size()), ' ') + number;
    }
    line += "  " + token;
  }
  return text + line + "\n";
}

}  // namespace

std::string token_list_text(const TokenList& list, const Tokenizer& tokenizer) {
  std::string text = cat(list.where, ": ", list.form, ", ");
  if (list.ids.empty()) return text + "skipped: it is empty\n";
  text +=
      cat(count_of(list.ids.size(), "token"), ", ", count_of(list.windows.size(), "window"), "\n");
  if (list.text) text += *list.text + (list.text->ends_with('\n') ? "" : "\n");
  for (size_t i = 0; i < list.windows.size(); ++i) {
    const size_t end = i + 1 < list.windows.size() ? list.windows[i + 1] : list.ids.size();
    if (list.windows.size() > 1) text += cat("window ", i + 1, ":\n");
    text += token_lines(list, tokenizer, list.windows[i], end);
  }
  return text;
}

std::string token_list_json(const TokenList& list, const Tokenizer& tokenizer) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object().member("schema", "fp8kv.tokenize/1").member("record", list.record);
  json.member("form", list.form).key("text");
  list.text ? json.value(*list.text) : json.null();
  json.key("ids").begin_array();
  for (const int32_t id : list.ids) json.value(int64_t{id});
  json.end_array().key("tokens").begin_array();
  for (const int32_t id : list.ids) json.value(utf8_name(tokenizer.token(id)));
  json.end_array().key("windows").begin_array();
  for (const size_t at : list.windows) json.value(uint64_t{at});
  json.end_array();
  if (list.ids.empty()) json.member("skipped", "empty");
  return json.end_object().text() + "\n";
}

}  // namespace fp8kv
