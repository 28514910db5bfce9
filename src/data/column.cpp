#include "data/column.h"

#include <vector>

#include "base/error.h"
#include "data/records.h"

namespace fp8kv {
namespace {

Json value_of(const Json& record, const std::string& column) {
  std::vector<std::string> names;
  for (size_t i = 0; i < record.size(); ++i) {
    if (record.key(i) == column) return record.value(i);
    names.push_back(record.key(i));
  }
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(quote(name));
  throw Error(cat(record.where(), ": has no column ", quote(column), ", has ",
                  quoted.empty() ? "none" : join(quoted), did_you_mean(column, names)),
              "name one of these with --column");
}

// Returns the field under which the table of record forms knows such a list.
const char* form_of_list(const Json& list) {
  const Json first = list[0];
  if (first.is_object()) return first.has("from") ? "conversations" : "messages";
  if (first.is_string()) return "turns";
  if (first.is_number()) return "input_ids";
  throw Error(cat(list.where(), ": is ", list.brief(),
                  ", expected a text, a list of messages, of texts or of token ids"),
              "name another field with --column");
}

}  // namespace

void require_column(const Json& record, const std::string& column) {
  value_of(record, column);
}

Json with_column(const Json& record, const std::string& column) {
  if (!record.is_object()) {
    fail(record.where(), ": is ", record.brief(), ", expected an object");
  }
  const Json value = value_of(record, column);
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object();
  if (value.is_null() || (value.is_array() && value.size() == 0)) {
    json.member("text", "");
  } else if (value.is_array()) {
    json.member(form_of_list(value), value);
    for (const char* also : {"tools", "chat_template_kwargs"}) {
      if (const auto found = record.find(also); found && column != also) json.member(also, *found);
    }
  } else if (value.is_string()) {
    json.member("text", value);
  } else {
    throw Error(cat(value.where(), ": is ", value.brief(), ", expected a text or a list"),
                "name another field with --column");
  }
  return Json::parse(json.end_object().text(), record.where());
}

}  // namespace fp8kv
