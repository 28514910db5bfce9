#include "data/documents.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

constexpr size_t kLargestJson = size_t(1) << 30;  // of a document that is parsed as a whole

Json parse_whole(std::string_view text, const std::string& label) {
  if (text.size() > kLargestJson) {
    throw Error(cat(label, ": one JSON document of ", human_bytes(text.size()), ", more than the ",
                    human_bytes(kLargestJson), " that are read as a whole"),
                "write one record a line: jq -c '.[]' FILE > FILE.jsonl");
  }
  return Json::parse(text, label);
}

void read_lines(std::string_view text, const std::string& label, const DocumentVisitor& visit) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    check_interrupt();
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (!visit.more()) return;
    visit.record(Json::parse_line(line, number, label));
  }
}

}  // namespace

void for_each_document(const DataSource& source, const DocumentVisitor& visit) {
  switch (source.layout) {
    case DataLayout::text:
      return visit.text(source.text);
    case DataLayout::json_lines:
      return read_lines(source.text, source.label, visit);
    case DataLayout::json_record:
      return visit.record(parse_whole(source.text, source.label));
    case DataLayout::json_array:
      break;
  }
  const Json records = parse_whole(source.text, source.label);
  for (size_t i = 0; i < records.size() && visit.more(); ++i) visit.record(records[i]);
}

}  // namespace fp8kv
