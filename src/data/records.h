// What the records of a data set look like: a table, one row per form. Turns one record into text
// or ids; knows nothing of files, windows or chat templates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct RecordForm {
  std::vector<std::string> fields;  // all must be there, the first decides; "x?" may be absent
  std::string summary;              // for people
  bool is_chat = false;             // a conversation

  std::string name() const;  // "prompt+completion"
};

// In the order in which a record is matched.
std::span<const RecordForm> record_forms();

struct Record {
  const RecordForm* form = nullptr;
  std::string text;         // "" when there are ids
  std::optional<Json> ids;  // the array of `input_ids`
};

// The form that a record has. Throws for what is no object, and for a record that fits none.
const RecordForm& form_of(const Json& record);

// The parts of a record are joined by newlines; of a chat they are "role: content". Throws, naming
// place and key, for a record that fits no form and for a field of another type.
Record read_record(const Json& record);

}  // namespace fp8kv
