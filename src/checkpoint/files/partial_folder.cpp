#include "checkpoint/files/partial_folder.h"

#include <algorithm>

#include "base/error.h"
#include "json/json.h"
#include "json/object_file.h"

namespace fp8kv {
namespace {

constexpr const char* kSchema = "fp8kv.remote/1";
constexpr uint64_t kLargestRecord = uint64_t(64) << 20;

PartialFile read_file(const Json& json) {
  PartialFile file;
  file.bytes = static_cast<uint64_t>(json.at("bytes").as_int());
  file.etag = json.get_string("etag", "");
  const Json present = json.at("present");
  for (size_t i = 0; i < present.size(); ++i) {
    const auto begin = static_cast<uint64_t>(present[i][0].as_int());
    const auto end = static_cast<uint64_t>(present[i][1].as_int());
    if (begin > end || end > file.bytes) {
      fail(present[i].where(), ": is no range of a file of ", file.bytes, " bytes");
    }
    file.add(begin, end);
  }
  return file;
}

}  // namespace

bool PartialFile::has(uint64_t begin, uint64_t end) const {
  return begin == end || std::any_of(present.begin(), present.end(), [&](const ByteRange& range) {
           return range.begin <= begin && end <= range.end;
         });
}

void PartialFile::add(uint64_t begin, uint64_t end) {
  present.push_back({begin, end});
  std::sort(present.begin(), present.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::vector<ByteRange> merged;
  for (const ByteRange& range : present) {
    if (merged.empty() || range.begin > merged.back().end) {
      merged.push_back(range);
    } else {
      merged.back().end = std::max(merged.back().end, range.end);
    }
  }
  present = std::move(merged);
}

uint64_t PartialRecord::bytes() const {
  uint64_t sum = 0;
  for (const auto& [name, file] : files) sum += file.bytes;
  return sum;
}

std::optional<PartialRecord> read_partial_record(const std::filesystem::path& folder) {
  const auto json = find_object(folder / kPartialRecord, JsonNumbers::finite, kLargestRecord);
  if (!json) return std::nullopt;
  if (json->get_string("schema", "") != kSchema) {
    fail(json->where(), ": is no record of this version, expected the schema ", quote(kSchema));
  }
  PartialRecord record;
  record.address = json->at("address").as_string();
  const Json files = json->at("files");
  for (size_t i = 0; i < files.size(); ++i) {
    record.files.emplace(files.key(i), read_file(files.value(i)));
  }
  return record;
}

std::string partial_record_text(const PartialRecord& record) {
  JsonWriter json;
  json.begin_object().member("schema", kSchema).member("address", record.address);
  json.key("files").begin_object();
  for (const auto& [name, file] : record.files) {
    json.key(name).begin_object().member("bytes", file.bytes).member("etag", file.etag);
    json.key("present").begin_array();
    for (const ByteRange& range : file.present) {
      json.begin_array().value(range.begin).value(range.end).end_array();
    }
    json.end_array().end_object();
  }
  return json.end_object().end_object().text();
}

}  // namespace fp8kv
