#include "data/sampling.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/rng.h"
#include "data/column.h"
#include "data/parquet_records.h"

namespace fp8kv {
namespace {

constexpr size_t kLineSearched = 4096;  // bytes searched for the next line behind a place
constexpr int kMostEmpty = 1000;        // empty records in a row before giving up

size_t character_at(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
  return at;
}

void check_text(std::string_view text, size_t offset, const std::string& label) {
  size_t bad = 0;
  if (is_utf8(text, &bad)) return;
  throw Error(cat(label, ": not valid UTF-8 at byte ", offset + bad),
              "convert it, for instance with: iconv -f LATIN1 -t UTF-8 FILE");
}

void visit_text(const DataSource& source, const std::vector<uint64_t>& places, size_t text_bytes,
                const SampleVisitor& visit) {
  const std::string_view text = source.text;
  for (const uint64_t place : places) {
    check_interrupt();
    const size_t newline = text.substr(place, kLineSearched).find('\n');
    const size_t begin = newline == text.npos ? character_at(text, place)
                                              : std::min(place + newline + 1, text.size());
    const size_t end = character_at(text, std::min<size_t>(begin + text_bytes, text.size()));
    const std::string_view excerpt = text.substr(begin, end - begin);
    check_text(excerpt, begin, source.label);
    visit.text(excerpt);
  }
}

Json record_of(const DataSource& source, const Json& record) {
  return source.column.empty() ? record : with_column(record, source.column);
}

void visit_lines(const DataSource& source, const std::vector<uint64_t>& places,
                 const SampleVisitor& visit) {
  const std::string_view text = source.text;
  size_t taken_to = 0;  // end of the last record taken
  for (const uint64_t place : places) {
    const size_t newline = place == 0 ? text.npos : text.rfind('\n', place - 1);
    size_t begin = std::max(newline == text.npos ? 0 : newline + 1, taken_to);
    bool took = false;
    for (int i = 0; i < kMostEmpty && !took && begin < text.size(); ++i) {
      check_interrupt();
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != line.npos) {
        const Json record = Json::parse(line, cat(source.label, ": the record at byte ", begin));
        const double fraction = place > begin ? static_cast<double>(place - begin) /
                                                    static_cast<double>(line.size() + 1)
                                              : 0;
        took = visit.record(record_of(source, record), fraction);
      }
      begin = end + 1;
    }
    taken_to = begin;
  }
}

void visit_rows(const DataSource& source, const std::vector<uint64_t>& places,
                const SampleVisitor& visit) {
  ParquetRecords records(source.text, source.label, source.column);
  const double rows_a_byte =
      static_cast<double>(records.count()) / static_cast<double>(source.text.size());
  for (const uint64_t place : places) {
    const double at = static_cast<double>(place) * rows_a_byte;
    const auto row = static_cast<uint64_t>(at);
    if (row > records.taken()) records.skip(row - records.taken());
    bool took = false;
    for (int i = 0; i < kMostEmpty && !took; ++i) {
      const auto record = records.next();
      if (!record) return;
      took = visit.record(record_of(source, *record), at - static_cast<double>(row));
    }
  }
}

}  // namespace

std::vector<uint64_t> sample_places(uint64_t total, uint64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint64_t> places(count);
  const double part = static_cast<double>(total) / static_cast<double>(count);
  for (uint64_t i = 0; i < count; ++i) {
    const double at = (static_cast<double>(i) + rng.uniform() * 15 / 16) * part;
    places[i] = std::min(static_cast<uint64_t>(at), total - 1);
  }
  return places;
}

void visit_sample(const DataSource& source, const std::vector<uint64_t>& places, size_t text_bytes,
                  const SampleVisitor& visit) {
  if (source.packing == Packing::none && source.mapped) {
    switch (source.layout) {
      case DataLayout::text:
        return visit_text(source, places, text_bytes, visit);
      case DataLayout::json_lines:
        return visit_lines(source, places, visit);
      case DataLayout::parquet:
        return visit_rows(source, places, visit);
      default:
        break;
    }
  }
  throw Error(cat(source.label, ": ", human_bytes(source.text.size()), " of ",
                  source.packing == Packing::none ? data_layout_name(source.layout) : "packed data",
                  ", which --shuffle cannot sample without reading all of it"),
              "make JSON lines, text or Parquet of it, or leave out --shuffle", ErrorKind::usage);
}

}  // namespace fp8kv
