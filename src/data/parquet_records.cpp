#include "data/parquet_records.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "data/column.h"
#include "data/records.h"

namespace fp8kv {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The schema as a record, so that missing columns give the same messages as missing fields.
Json schema_record(const ParquetFile& file) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object();
  Names seen;  // names may repeat
  for (const std::string& name : file.columns()) {
    if (has(seen, name)) continue;
    json.member(name, "");
    seen.push_back(name);
  }
  return Json::parse(json.end_object().text(), file.label());
}

Names fields_of(const RecordForm& form) {
  Names names;
  for (std::string field : form.fields) {
    if (field.back() == '?') field.pop_back();
    names.push_back(std::move(field));
  }
  return names;
}

// The columns to read: `column`, or those of the first matching record form, and those that chat
// templates take besides.
Names columns_of(const ParquetFile& file, const std::string& column) {
  const Json schema = schema_record(file);
  Names columns = {"tools", "chat_template_kwargs"};
  if (!column.empty()) {
    require_column(schema, column);
    columns.push_back(column);
    return columns;
  }
  for (std::string& name : fields_of(form_of(schema))) columns.push_back(std::move(name));
  return columns;
}

}  // namespace

ParquetRecords::ParquetRecords(std::string_view bytes, const std::string& label,
                               const std::string& column)
    : file_(bytes, label), rows_(file_, columns_of(file_, column)) {}

std::optional<Json> ParquetRecords::next() {
  if (!rows_.next()) return std::nullopt;
  return Json::parse(rows_.json(), cat(file_.label(), ": row ", rows_.number()));
}

}  // namespace fp8kv
