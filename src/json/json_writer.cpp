#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "json/json.h"

namespace fp8kv {
namespace {

std::string escaped_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          char buffer[8];
          std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned char>(c));
          out += buffer;
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

}  // namespace

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  FP8KV_ASSERT(!levels_.back().is_object);
  if (!levels_.back().empty) out_ += levels_.back().one_line ? ", " : ",";
  levels_.back().empty = false;
  if (!levels_.back().one_line) new_line();
}

void JsonWriter::open(bool is_object, char bracket) {
  before_value();
  out_ += bracket;
  const bool one_line =
      layout_ == Layout::one_line || (!levels_.empty() && levels_.back().one_line);
  levels_.push_back({is_object, one_line});
}

void JsonWriter::close(bool is_object, char bracket) {
  FP8KV_ASSERT(!levels_.empty() && levels_.back().is_object == is_object && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.one_line) new_line();
  out_ += bracket;
}

JsonWriter& JsonWriter::begin_object() {
  open(true, '{');
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  close(true, '}');
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  open(false, '[');
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  close(false, ']');
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  FP8KV_ASSERT(!levels_.empty() && levels_.back().is_object && !after_key_);
  Level& level = levels_.back();
  if (!level.empty) out_ += level.one_line ? ", " : ",";
  level.empty = false;
  if (!level.one_line) new_line();
  out_ += escaped_string(name);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  out_ += escaped_string(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  before_value();
  out_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(int64_t number) {
  before_value();
  out_ += cat(number);
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t number) {
  before_value();
  out_ += cat(number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  FP8KV_ASSERT(std::isfinite(number));
  before_value();
  out_ += cat(number);
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::value(std::span<const float> numbers) {
  begin_array();
  levels_.back().one_line = true;
  for (const float number : numbers) value(number);
  return end_array();
}

JsonWriter& JsonWriter::value(std::span<const int64_t> numbers) {
  begin_array();
  levels_.back().one_line = true;
  for (const int64_t number : numbers) value(number);
  return end_array();
}

JsonWriter& JsonWriter::value(std::span<const std::string> texts) {
  begin_array();
  for (const std::string& text : texts) value(text);
  return end_array();
}

JsonWriter& JsonWriter::value(const Json& parsed) {
  if (parsed.is_object()) {
    begin_object();
    for (size_t i = 0; i < parsed.size(); ++i) key(parsed.key(i)).value(parsed.value(i));
    return end_object();
  }
  if (parsed.is_array()) {
    begin_array();
    for (size_t i = 0; i < parsed.size(); ++i) value(parsed[i]);
    return end_array();
  }
  if (parsed.is_string()) return value(parsed.as_string());
  if (parsed.is_bool()) return value(parsed.as_bool());
  if (parsed.is_number()) {
    before_value();
    out_ += parsed.number_text();
    return *this;
  }
  return null();
}

std::string JsonWriter::text() const {
  FP8KV_ASSERT(levels_.empty() && !after_key_);
  return layout_ == Layout::indented ? out_ + "\n" : out_;
}

}  // namespace fp8kv
