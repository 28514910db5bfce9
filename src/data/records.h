// A table with one row for each form of record in data sets. Turns a record into text or ids. Knows
// nothing of files, windows or chat templates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct RecordForm {
  std::vector<std::string> fields;  // all must be present, the first one decides; "x?" is optional
  std::string summary;              // for people
  bool is_chat = false;             // it is a conversation

  std::string name() const;  // "prompt+completion"
};

// In the order in which forms are tried.
std::span<const RecordForm> record_forms();

struct Record {
  const RecordForm* form = nullptr;
  std::string text;         // "" when there are ids
  std::optional<Json> ids;  // the array of `input_ids`
};

// The form of a record. Throws if it is no object, or fits no form.
const RecordForm& form_of(const Json& record);

// Joins the parts of a record with newlines; those of a chat are "role: content". Throws, naming
// place and key, for a record that fits no form and for a field of the wrong type.
Record read_record(const Json& record);

}  // namespace fp8kv
