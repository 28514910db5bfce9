#include "data/documents.h"

#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/column.h"
#include "data/csv.h"
#include "data/parquet_records.h"
#include "data/read_ahead.h"

namespace fp8kv {
namespace {

constexpr size_t kLargestJson = size_t(1) << 30;  // limit for a document that is parsed as a whole

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

// Like DocumentVisitor, with the approximate number of bytes of each record.
struct Reader {
  std::function<bool()> more;
  std::function<void(TextStream& text)> text;
  std::function<void(const Json& record, size_t bytes)> record;
};

void read_lines(const DataSource& source, const Reader& reader) {
  size_t number = 1;
  TextStream text = source.open_text([&] { return cat(source.label, ":", number); });
  for (;; ++number) {
    check_interrupt();
    const auto line = text.line();
    if (!line) return;
    if (line->find_first_not_of(" \t\r") == line->npos) continue;
    if (!reader.more()) return;
    reader.record(Json::parse_line(*line, number, source.label), line->size());
  }
}

void read_table(const DataSource& source, const Reader& reader) {
  TextStream text = source.open_text();
  const char separator = source.layout == DataLayout::tsv ? '\t' : ',';
  size_t begin = 0;
  read_csv(text, separator, source.label, [&](const Json& record) {
    if (!reader.more()) return false;
    reader.record(record, text.position() - begin);
    begin = text.position();
    return true;
  });
}

void read_rows(const DataSource& source, const Reader& reader) {
  ParquetRecords records(source.text, source.label, source.column);
  for (auto next = records.next(); next && reader.more(); next = records.next()) {
    reader.record(*next, records.bytes());
  }
}

void read_documents(const DataSource& source, const Reader& reader) {
  switch (source.layout) {
    case DataLayout::text: {
      TextStream text = source.open_text_ahead([&] { return source.label; });
      return reader.text(text);
    }
    case DataLayout::json_lines:
      return read_lines(source, reader);
    case DataLayout::json_record:
      return reader.record(parse_whole(source), source.text.size());
    case DataLayout::csv:
    case DataLayout::tsv:
      return read_table(source, reader);
    case DataLayout::parquet:
      return read_rows(source, reader);
    case DataLayout::json_array:
      break;
  }
  const Json records = parse_whole(source);
  for (size_t i = 0; i < records.size() && reader.more(); ++i) reader.record(records[i], 0);
}

// The file size from which a second thread pays off.
constexpr size_t kLeastAhead = size_t(1) << 20;  // bytes of the file
constexpr size_t kMostAhead = size_t(4) << 20;   // approximate bytes of waiting records

// A record, or the error in its place. `ask_first`: the consumer first asks `more`, as a single
// thread would have.
struct ReadRecord {
  std::optional<Json> record;
  size_t bytes = 0;
  std::exception_ptr error;
  bool ask_first = true;
};

bool is_read_ahead(const DataSource& source) {
  if (source.text.size() < kLeastAhead) return false;
  switch (source.layout) {
    case DataLayout::json_lines:
    case DataLayout::csv:
    case DataLayout::tsv:
    case DataLayout::parquet:
      return true;
    case DataLayout::text:
    case DataLayout::json_array:
    case DataLayout::json_record:
      break;
  }
  return false;
}

// Reads, unpacks and parses in another thread. Gives the same records and the same final error as a
// single thread.
void read_ahead(const DataSource& source, const Reader& reader) {
  const auto read = [&source](const ReadAhead<ReadRecord>::Put& put) {
    bool wanted = true, asked = false;
    std::exception_ptr error;
    try {
      read_documents(source, {[&] {
                                asked = true;
                                return wanted;
                              },
                              nullptr,
                              [&](const Json& record, size_t bytes) {
                                asked = false;
                                wanted = put({record, bytes, nullptr, true}, bytes);
                              }});
    } catch (...) {
      error = std::current_exception();
    }
    // The consumer gets the only reference, so that this thread does not free what it reads.
    if (error) put({std::nullopt, 0, std::move(error), asked}, 0);
  };
  std::unique_ptr<ReadAhead<ReadRecord>> ahead;
  try {
    ahead = std::make_unique<ReadAhead<ReadRecord>>(kMostAhead, read);
  } catch (const std::system_error&) {
    return read_documents(source, reader);  // no thread could be started
  }
  while (const auto next = ahead->next()) {
    if (next->ask_first && !reader.more()) return;
    if (next->error) std::rethrow_exception(next->error);
    reader.record(*next->record, next->bytes);
  }
}

}  // namespace

void for_each_document(const DataSource& source, const DocumentVisitor& visit) {
  const Reader reader = {
      visit.more, visit.text, [&](const Json& record, size_t) {
        visit.record(source.column.empty() ? record : with_column(record, source.column));
      }};
  is_read_ahead(source) ? read_ahead(source, reader) : read_documents(source, reader);
}

}  // namespace fp8kv
