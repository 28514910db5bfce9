#include "tasks/task_file.h"

#include "base/error.h"
#include "data/data_source.h"
#include "data/documents.h"
#include "formats/parquet/parquet.h"

namespace fp8kv {
namespace {

// Reads all columns, because the columns of tasks differ from those of texts.
void read_parquet(const DataSource& source, const std::function<bool(const Json& record)>& visit) {
  const ParquetFile file(source.text, source.label);
  ParquetRows rows(file, file.columns());
  while (rows.next()) {
    const std::string where = cat(source.label, ": row ", rows.number());
    if (!visit(Json::parse(rows.json(), where))) return;
  }
}

}  // namespace

void for_each_item(const std::filesystem::path& path,
                   const std::function<bool(const Json& record)>& visit) {
  const DataSource source = open_data(path);
  if (source.layout == DataLayout::text) {
    throw Error(cat(source.label, ": is plain text, expected records"),
                "write one item a line as JSON, in a file that ends in .jsonl");
  }
  if (source.layout == DataLayout::parquet) return read_parquet(source, visit);
  bool more = true;
  for_each_document(
      source, {[&] { return more; }, nullptr, [&](const Json& record) { more = visit(record); }});
}

}  // namespace fp8kv
