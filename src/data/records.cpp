#include "data/records.h"

#include <array>
#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

// Whether the key is present, even as null: `content` is null in assistant messages that only call
// tools.
bool has_key(const Json& object, std::string_view key) {
  if (!object.is_object()) return false;
  for (size_t i = 0; i < object.size(); ++i) {
    if (object.key(i) == key) return true;
  }
  return false;
}

void add_line(std::string& text, std::string_view line) {
  if (line.empty()) return;
  if (!text.empty()) text += '\n';
  text += line;
}

Json array_at(const Json& object, std::string_view key) {
  Json value = object.at(key);
  if (!value.is_array()) fail(value.where(), ": is ", value.brief(), ", expected an array");
  return value;
}

void read_ids(const Json& record, const RecordForm& form, Record& out) {
  out.ids = array_at(record, form.fields[0]);
}

void read_texts(const Json& record, const RecordForm& form, Record& out) {
  for (std::string field : form.fields) {
    const bool may_be_absent = field.back() == '?';
    if (may_be_absent) field.pop_back();
    if (may_be_absent && !record.has(field)) continue;
    add_line(out.text, record.at(field).as_string());
  }
}

void read_turns(const Json& record, const RecordForm& form, Record& out) {
  const Json turns = array_at(record, form.fields[0]);
  for (size_t i = 0; i < turns.size(); ++i) add_line(out.text, turns[i].as_string());
}

// Returns a string as it is, and joins a list of parts {"type": "text", "text" or "value": ...}.
std::string content_text(const Json& content) {
  if (!content.is_array()) return content.as_string();
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json part = content[i];
    if (const std::string type = part.at("type").as_string(); type != "text") {
      throw Error(cat(part.where(), ".type: is ", quote(type), ", expected 'text'"),
                  "only text can be calibrated on: remove such records");
    }
    const auto value = part.find("value");
    add_line(text, (value ? *value : part.at("text")).as_string());
  }
  return text;
}

// Reads both spellings of messages: role and content, or from and value.
void read_chat(const Json& record, const RecordForm& form, Record& out) {
  const Json messages = array_at(record, form.fields[0]);
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json message = messages[i];
    const bool share_gpt = message.has("from");
    const char* key = share_gpt ? "value" : "content";
    const auto content = message.find(key);
    const bool only_calls = has_key(message, key) || message.has("tool_calls");
    if (!content && only_calls) continue;
    const std::string role = message.at(share_gpt ? "from" : "role").as_string();
    add_line(out.text, cat(role, ": ", content_text(content ? *content : message.at(key))));
  }
}

struct Row {
  RecordForm form;
  void (*read)(const Json& record, const RecordForm& form, Record& out);
};

const std::array<Row, 9>& rows() {
  static const std::array<Row, 9> kRows = {{
      {{{"input_ids"}, "token ids, taken as they are: one record is one window"}, read_ids},
      {{{"text"}, "plain text"}, read_texts},
      {{{"article"}, "plain text (cnn_dailymail)"}, read_texts},
      {{{"messages"}, "chat: role and content", true}, read_chat},
      {{{"conversations"}, "chat: from and value (ShareGPT)", true}, read_chat},
      {{{"prompt", "completion"}, "a prompt and its completion"}, read_texts},
      {{{"instruction", "input?", "output"}, "an instruction and its answer (Alpaca)"}, read_texts},
      {{{"question", "answer"}, "a question and its answer (GSM8K)"}, read_texts},
      {{{"turns"}, "what a user says, turn by turn (MT-Bench)"}, read_turns},
  }};
  return kRows;
}

bool matches(const Json& record, const RecordForm& form) {
  for (const std::string& field : form.fields) {
    if (field.back() != '?' && !record.has(field)) return false;
  }
  return true;
}

[[noreturn]] void fail_unknown(const Json& record) {
  constexpr size_t kMostShown = 12;
  std::vector<std::string> found;
  for (size_t i = 0; i < record.size() && i < kMostShown; ++i) {
    found.push_back(quote(record.key(i)) + (record.value(i).is_null() ? " (null)" : ""));
  }
  if (record.size() > kMostShown) found.push_back(cat(record.size() - kMostShown, " more"));
  std::vector<std::string> known;
  for (const RecordForm& form : record_forms()) known.push_back(form.name());
  throw Error(cat(record.where(), ": a record without a known field: has ",
                  found.empty() ? "none" : join(found), ", expected ", join(known, " or ")),
              "name the field that holds the text with --column");
}

const Row& row_of(const Json& record) {
  if (!record.is_object()) {
    fail(record.where(), ": is ", record.brief(), ", expected an object");
  }
  for (const Row& row : rows()) {
    if (matches(record, row.form)) return row;
  }
  fail_unknown(record);
}

}  // namespace

std::string RecordForm::name() const {
  std::string joined;
  for (const std::string& field : fields) {
    joined += joined.empty() ? "" : "+";
    joined += field.back() == '?' ? cat("[", field.substr(0, field.size() - 1), "]") : field;
  }
  return joined;
}

std::span<const RecordForm> record_forms() {
  static const std::vector<RecordForm> kForms = [] {
    std::vector<RecordForm> forms;
    for (const Row& row : rows()) forms.push_back(row.form);
    return forms;
  }();
  return kForms;
}

const RecordForm& form_of(const Json& record) {
  return row_of(record).form;
}

Record read_record(const Json& record) {
  const Row& row = row_of(record);
  Record out;
  out.form = &row.form;
  row.read(record, row.form, out);
  return out;
}

}  // namespace fp8kv
