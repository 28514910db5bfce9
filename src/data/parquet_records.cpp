#include "data/parquet_records.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "data/column.h"
#include "data/records.h"
#include "formats/parquet/parquet.h"

namespace fp8kv {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The whole schema as a record, so that what is missing is said as of any record.
Json schema_record(const ParquetFile& file) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object();
  Names seen;  // names may be there twice
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

}  // namespace

void read_parquet(std::string_view bytes, const std::string& label, const std::string& column,
                  const std::function<bool(const Json& record)>& record) {
  const ParquetFile file(bytes, label);
  Names columns = {"tools", "chat_template_kwargs"};
  if (!column.empty()) {
    require_column(schema_record(file), column);
    columns.push_back(column);
  } else {
    for (std::string& name : fields_of(form_of(schema_record(file)))) {
      columns.push_back(std::move(name));
    }
  }
  for (ParquetRows rows(file, columns); rows.next();) {
    if (!record(Json::parse(rows.json(), cat(label, ": row ", rows.number())))) return;
  }
}

}  // namespace fp8kv
