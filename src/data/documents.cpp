#include "data/documents.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/column.h"
#include "data/csv.h"
#include "data/parquet_records.h"

namespace fp8kv {
namespace {

constexpr size_t kLargestJson = size_t(1) << 30;  // of a document that is parsed as a whole

Json parse_whole(const DataSource& source) {
  TextStream stream = source.open_text([&] { return source.label; });
  const std::string_view text = stream.peek(kLargestJson + 1);
  if (text.size() > kLargestJson) {
    throw Error(cat(source.label, ": one JSON document of more than the ",
                    human_bytes(kLargestJson), " that are read as a whole"),
                "write one record a line: jq -c '.[]' FILE > FILE.jsonl");
  }
  return Json::parse(text, source.label);
}

void read_lines(const DataSource& source, const DocumentVisitor& visit) {
  size_t number = 1;
  TextStream text = source.open_text([&] { return cat(source.label, ":", number); });
  for (;; ++number) {
    check_interrupt();
    const auto line = text.line();
    if (!line) return;
    if (line->find_first_not_of(" \t\r") == line->npos) continue;
    if (!visit.more()) return;
    visit.record(Json::parse_line(*line, number, source.label));
  }
}

void read_table(const DataSource& source, const DocumentVisitor& visit) {
  TextStream text = source.open_text();
  const char separator = source.layout == DataLayout::tsv ? '\t' : ',';
  read_csv(text, separator, source.label, [&](const Json& record) {
    if (!visit.more()) return false;
    visit.record(record);
    return true;
  });
}

void read_rows(const DataSource& source, const DocumentVisitor& visit) {
  ParquetRecords records(source.text, source.label, source.column);
  for (auto next = records.next(); next && visit.more(); next = records.next()) {
    visit.record(*next);
  }
}

void visit_documents(const DataSource& source, const DocumentVisitor& visit) {
  switch (source.layout) {
    case DataLayout::text: {
      TextStream text = source.open_text([&] { return source.label; });
      return visit.text(text);
    }
    case DataLayout::json_lines:
      return read_lines(source, visit);
    case DataLayout::json_record:
      return visit.record(parse_whole(source));
    case DataLayout::csv:
    case DataLayout::tsv:
      return read_table(source, visit);
    case DataLayout::parquet:
      return read_rows(source, visit);
    case DataLayout::json_array:
      break;
  }
  const Json records = parse_whole(source);
  for (size_t i = 0; i < records.size() && visit.more(); ++i) visit.record(records[i]);
}

}  // namespace

void for_each_document(const DataSource& source, const DocumentVisitor& visit) {
  if (source.column.empty()) return visit_documents(source, visit);
  DocumentVisitor of_column = visit;
  of_column.record = [&](const Json& record) { visit.record(with_column(record, source.column)); };
  visit_documents(source, of_column);
}

}  // namespace fp8kv
