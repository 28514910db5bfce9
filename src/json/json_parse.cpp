// Parses texts into the tree of json_document.h.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "json/json.h"
#include "json/json_document.h"
#include "json/python_numbers.h"

namespace fp8kv {
namespace {

constexpr size_t kDeepest = 128;

// Feeds the text to the parser byte by byte and checks for interrupts, since one string may be
// gigabytes long.
class HeardText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit HeardText(const char* at) : at_(at) {}
  reference operator*() const { return *at_; }
  HeardText& operator++() {
    if ((reinterpret_cast<uintptr_t>(++at_) & 0x7FFF) == 0) check_interrupt();
    return *this;
  }
  HeardText operator++(int) {
    const HeardText before = *this;
    ++*this;
    return before;
  }
  bool operator==(const HeardText& other) const { return at_ == other.at_; }
  bool operator!=(const HeardText& other) const { return at_ != other.at_; }

 private:
  const char* at_;
};

// Builds the tree from nlohmann's parser events. The parser is iterative, so deep nesting uses no
// stack before the limit is checked here.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(JsonNode& root, std::string_view text, const std::string& source,
              std::span<const PythonNumber> taken, size_t first_line)
      : text_(text), source_(source), taken_(taken), first_line_(first_line), root_(root) {}

  bool null() override { return put({}); }
  bool boolean(bool flag) override { return put({flag}); }
  bool number_integer(number_integer_t value) override {
    // Only numbers with a minus sign come here, so a zero was written as "-0".
    return value == 0 ? put_number(-0.0, "-0") : put_integer(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) {
      return put_integer(static_cast<int64_t>(value));
    }
    return put_number(static_cast<double>(value), cat(uint64_t{value}));
  }
  bool number_float(number_float_t value, const string_t& written) override {
    return put_number(value, written);
  }
  bool string(string_t& text) override {
    return put({std::make_unique<std::string>(std::move(text))});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return start(true); }
  bool start_array(size_t) override { return start(false); }
  bool key(string_t& name) override {
    open_.back()->keys.push_back(std::move(name));
    return true;
  }
  bool end_object() override {
    std::unordered_set<std::string_view> seen;
    for (const std::string& name : open_.back()->keys) {
      check_interrupt();
      if (!seen.insert(name).second) fail(source_, ": the key ", quote(name), " is there twice");
    }
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The message is "... parse error at line 1, column 9: syntax error while ... - what; ...".
    // Keep the what.
    const std::string_view message = error.what();
    const size_t dash = message.find(" - ");
    std::string reason(dash == message.npos ? "syntax error" : message.substr(dash + 3));
    const size_t last_read = reason.find("; last read");
    if (last_read != reason.npos) reason.resize(last_read);
    const std::string_view at =
        text_.substr(std::min(position == 0 ? 0 : position - 1, text_.size()));
    if (at.starts_with("NaN") || at.starts_with("Infinity")) {
      reason = "NaN and Infinity are no numbers of JSON";
    }
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const auto line =
        first_line_ + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t line_start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    fail(source_, ": not valid JSON at line ", line, ", column ", position - line_start, ": ",
         reason);
  }

 private:
  bool put_integer(int64_t value) {
    if (!taken_.empty() && taken_.front().index == numbers_) {
      const PythonNumber& number = taken_.front();
      taken_ = taken_.subspan(1);
      return put_number(number.value, number.written);
    }
    ++numbers_;
    return put({value});
  }
  bool put_number(double value, const std::string& written) {
    ++numbers_;
    return put({std::make_unique<JsonNode::Number>(JsonNode::Number{value, written})});
  }

  bool put(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back()->values.push_back(std::move(node));
    }
    return true;
  }
  bool start(bool is_object) {
    if (open_.size() >= kDeepest) fail(source_, ": nested deeper than ", kDeepest, " levels");
    auto children = std::make_unique<JsonNode::Children>();
    children->is_object = is_object;
    JsonNode::Children* const opened = children.get();
    put({std::move(children)});
    open_.push_back(opened);
    return true;
  }

  std::string_view text_;
  const std::string& source_;
  std::span<const PythonNumber> taken_;  // still to come
  size_t numbers_ = 0;                   // numbers seen so far
  size_t first_line_;                    // line of `text_`'s start, for messages
  JsonNode& root_;
  std::vector<JsonNode::Children*> open_;
};

// `first_line` is the number of the line at which `text` begins, for messages.
void build_tree(JsonNode& root, std::string_view text, const std::string& source,
                JsonNumbers numbers, size_t first_line) {
  check_interrupt();  // there may be millions of small texts
  // The parser takes a NUL for the end of the text and would ignore the rest.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    fail(source, ": not valid JSON: byte ", nul, " is NUL");
  }
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    fail(source, ": not valid JSON: there is nothing in it");
  }
  std::string plain;
  std::vector<PythonNumber> taken;
  if (numbers == JsonNumbers::python) {
    plain = text;
    taken = take_python_numbers(plain);
    text = plain;
  }
  TreeBuilder builder(root, text, source, taken, first_line);
  if (!nlohmann::json::sax_parse(HeardText(text.data()), HeardText(text.data() + text.size()),
                                 &builder)) {
    fail(source, ": not valid JSON");
  }
}

}  // namespace

Json Json::parse(std::string_view text, const std::string& source, JsonNumbers numbers) {
  auto document = std::make_shared<JsonDocument>();
  document->source = source;
  document->bytes = text.size();
  build_tree(document->root, text, document->source, numbers, 1);
  return Json(document, &document->root, "");
}

Json Json::parse_line(std::string_view line, size_t number, const std::string& label) {
  auto document = std::make_shared<JsonDocument>();
  document->source = cat(label, ":", number);
  document->bytes = line.size();
  build_tree(document->root, line, document->source, JsonNumbers::finite, number);
  return Json(document, &document->root, "");
}

Json Json::read(const std::filesystem::path& path, JsonNumbers numbers, uint64_t max_bytes) {
  const std::string text = read_regular_text(path, max_bytes);
  const std::string source = quote(path.string());
  refuse_lfs_pointer(text, source);
  return parse(text, source, numbers);
}

}  // namespace fp8kv
