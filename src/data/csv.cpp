#include "data/csv.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

constexpr size_t kLongestRecord = size_t(1) << 30;

class CsvReader {
 public:
  CsvReader(TextStream& text, char separator, const std::string& label)
      : text_(text), separator_(separator), label_(label) {
    with_context(label, [&] { read_header(); });
  }

  // Returns nullopt at the end.
  std::optional<Json> next() {
    ++number_;
    if (!read_named_fields()) return std::nullopt;
    if (fields_.size() != columns_.size()) {
      throw Error(cat(where(), ": has ", count_of(fields_.size(), "field"), ", expected ",
                      columns_.size(), ", as the first line has"),
                  "a field with a separator or a newline in it stands in double quotes");
    }
    JsonWriter json(JsonWriter::Layout::one_line);
    json.begin_object();
    for (size_t i = 0; i < fields_.size(); ++i) json.member(columns_[i], fields_[i]);
    return Json::parse(json.end_object().text(), where());
  }

 private:
  std::string where() const { return cat(label_, ": record ", number_, ", line ", first_line_); }

  bool read_named_fields() {
    try {
      return read_fields();
    } catch (Error& error) {
      if (error.kind() != ErrorKind::interrupted) error.add_context(where());
      throw;
    }
  }

  void read_header() {
    if (!read_fields()) fail("has no first line with the names of the columns");
    columns_ = fields_;
    std::vector<std::string> sorted = columns_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end()) return;
    throw Error(cat("has the column ", quote(*twice), " twice"),
                "the first line names the columns, each by its own name");
  }

  // Reads the next record, and skips empty lines. Returns false at the end.
  bool read_fields() {
    fields_.clear();
    std::optional<std::string_view> line;
    do {
      first_line_ = lines_ + 1;
      line = next_line();
    } while (line && line->empty());
    if (!line) return false;
    for (;;) {
      if (line->starts_with('"')) {
        line->remove_prefix(1);
        line = quoted_field(*line);
      } else {
        const size_t end = std::min(line->find(separator_), line->size());
        const std::string_view field = line->substr(0, end);
        fields_.emplace_back(field);
        line->remove_prefix(end);
      }
      if (line->empty()) return true;
      if (line->front() != separator_) {
        throw Error(cat("field ", fields_.size(), ": goes on behind its closing quote"),
                    "a quote within a quoted field is written twice");
      }
      line->remove_prefix(1);
    }
  }

  // Reads a quoted field from behind its opening quote. Returns the rest of the line that closes
  // it.
  std::string_view quoted_field(std::string_view line) {
    std::string field;
    for (;;) {
      const size_t quote_at = line.find('"');
      field += line.substr(0, quote_at);
      if (quote_at == line.npos) {
        if (field.size() > kLongestRecord) {
          fail("field ", fields_.size() + 1, ": is longer than ", human_bytes(kLongestRecord));
        }
        field += ended_with_return_ ? "\r\n" : "\n";
        const std::optional<std::string_view> more = next_line();
        if (!more) {
          throw Error(cat("field ", fields_.size() + 1, ": its quote is not closed"),
                      "is the file cut short?");
        }
        line = *more;
        continue;
      }
      line.remove_prefix(quote_at + 1);
      if (!line.starts_with('"')) break;
      field += '"';
      line.remove_prefix(1);
    }
    fields_.push_back(std::move(field));
    return line;
  }

  std::optional<std::string_view> next_line() {
    check_interrupt();
    std::optional<std::string_view> line = text_.line();
    if (!line) return std::nullopt;
    ++lines_;
    ended_with_return_ = line->ends_with('\r');
    if (ended_with_return_) line->remove_suffix(1);
    return line;
  }

  TextStream& text_;
  char separator_;
  const std::string& label_;
  std::vector<std::string> columns_;
  std::vector<std::string> fields_;
  uint64_t number_ = 0;
  size_t lines_ = 0;
  size_t first_line_ = 0;
  bool ended_with_return_ = false;
};

}  // namespace

void read_csv(TextStream& text, char separator, const std::string& label,
              const std::function<bool(const Json& record)>& record) {
  CsvReader reader(text, separator, label);
  for (std::optional<Json> next = reader.next(); next; next = reader.next()) {
    if (!record(*next)) return;
  }
}

}  // namespace fp8kv
