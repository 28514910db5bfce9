#include "json/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <unordered_set>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "json/python_numbers.h"

namespace fp8kv {

// One value. It is small, because a hostile header may hold a hundred million of them.
struct JsonNode {
  struct Children {
    std::vector<JsonNode> values;
    std::vector<std::string> keys;  // object: one per value
    bool is_object = false;
  };
  // A number that is not a plain integer. It keeps its spelling, so that copying a document changes
  // no digit.
  struct Number {
    double value = 0;
    std::string text;
  };
  using Text = std::unique_ptr<std::string>;

  std::variant<std::monostate, bool, int64_t, std::unique_ptr<Number>, Text,
               std::unique_ptr<Children>>
      is;

  const Children* children() const {
    const auto* children = std::get_if<std::unique_ptr<Children>>(&is);
    return children ? children->get() : nullptr;
  }
  // Returns nullptr for plain integers.
  const Number* number() const {
    const auto* number = std::get_if<std::unique_ptr<Number>>(&is);
    return number ? number->get() : nullptr;
  }
};
static_assert(sizeof(JsonNode) == 16);

struct Json::Document {
  // Freeing millions of nodes takes seconds. After an interrupt they are leaked, so that the user
  // does not wait.
  ~Document() {
    constexpr size_t kLarge = size_t{1} << 20;
    auto* children = std::get_if<std::unique_ptr<JsonNode::Children>>(&root.is);
    if (bytes > kLarge && children && is_interrupted()) children->release();
  }

  std::string source;
  JsonNode root;
  size_t bytes = 0;
};

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

const char* type_name(const Json& json) {
  if (json.is_null()) return "null";
  if (json.is_bool()) return "true or false";
  if (json.is_number()) return "a number";
  if (json.is_string()) return "a string";
  return json.is_array() ? "an array" : "an object";
}

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
  auto document = std::make_shared<Document>();
  document->source = source;
  document->bytes = text.size();
  build_tree(document->root, text, document->source, numbers, 1);
  return Json(document, &document->root, "");
}

Json Json::parse_line(std::string_view line, size_t number, const std::string& label) {
  auto document = std::make_shared<Document>();
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

bool Json::is_null() const {
  return std::holds_alternative<std::monostate>(node_->is);
}
bool Json::is_bool() const {
  return std::holds_alternative<bool>(node_->is);
}
bool Json::is_number() const {
  return std::holds_alternative<int64_t>(node_->is) || node_->number();
}
bool Json::is_string() const {
  return std::holds_alternative<JsonNode::Text>(node_->is);
}
bool Json::is_array() const {
  return node_->children() && !node_->children()->is_object;
}
bool Json::is_object() const {
  return node_->children() && node_->children()->is_object;
}

void Json::fail_type(const char* expected) const {
  const std::string type = type_name(*this), value = brief();
  fail(where(), ": is ", type, type == value ? "" : cat(" (", value, ")"), ", expected ", expected);
}

bool Json::as_bool() const {
  if (!is_bool()) fail_type("true or false");
  return std::get<bool>(node_->is);
}

int64_t Json::as_int() const {
  if (!is_number()) fail_type("an integer");
  if (!node_->number()) return std::get<int64_t>(node_->is);
  const double value = node_->number()->value;
  if (value != std::floor(value) || !(std::abs(value) < 9e15)) fail_type("an integer");
  return static_cast<int64_t>(value);
}

double Json::as_double() const {
  if (!is_number()) fail_type("a number");
  if (node_->number()) return node_->number()->value;
  return static_cast<double>(std::get<int64_t>(node_->is));
}

const std::string& Json::as_string() const {
  if (!is_string()) fail_type("a string");
  return *std::get<JsonNode::Text>(node_->is);
}

std::string Json::number_text() const {
  if (!is_number()) fail_type("a number");
  return node_->number() ? node_->number()->text : cat(std::get<int64_t>(node_->is));
}

size_t Json::size() const {
  return node_->children() ? node_->children()->values.size() : 0;
}

Json Json::operator[](size_t index) const {
  FP8KV_ASSERT(index < size());
  return Json(document_, &node_->children()->values[index], cat(path_, "[", index, "]"), reads_);
}

const std::string& Json::key(size_t index) const {
  if (!is_object()) fail_type("an object");
  FP8KV_ASSERT(index < size());
  return node_->children()->keys[index];
}

Json Json::value(size_t index) const {
  const std::string& name = key(index);
  // Quoting guards messages against foreign names. Ordinary keys stay bare.
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  const std::string shown = plain && !name.empty() ? name : quote(name);
  return Json(document_, &node_->children()->values[index],
              path_.empty() ? shown : path_ + "." + shown, reads_);
}

Json Json::noting(JsonReads& reads) const {
  return Json(document_, node_, path_, &reads);
}

std::optional<Json> Json::find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  const auto at = std::find(node_->children()->keys.begin(), node_->children()->keys.end(), key);
  if (at == node_->children()->keys.end()) return std::nullopt;
  Json found = value(static_cast<size_t>(at - node_->children()->keys.begin()));
  if (reads_ != nullptr) reads_->nodes_.insert(found.node_);
  if (found.is_null()) return std::nullopt;
  return found;
}

Json Json::at(std::string_view key) const {
  if (!is_object()) fail_type("an object");
  if (auto found = find(key)) return *found;
  if (std::find(node_->children()->keys.begin(), node_->children()->keys.end(), key) !=
      node_->children()->keys.end()) {
    fail(where(), ": the key ", quote(key), " is null");
  }
  fail(where(), ": the key ", quote(key), " is missing",
       did_you_mean(key, node_->children()->keys));
}

int64_t Json::get_int(std::string_view key, int64_t otherwise) const {
  const auto found = find(key);
  return found ? found->as_int() : otherwise;
}

double Json::get_double(std::string_view key, double otherwise) const {
  const auto found = find(key);
  return found ? found->as_double() : otherwise;
}

bool Json::get_bool(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->as_bool() : otherwise;
}

std::string Json::get_string(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->as_string() : std::string(otherwise);
}

std::string Json::where() const {
  return path_.empty() ? document_->source : cat(document_->source, ": ", path_);
}

std::string Json::brief() const {
  JsonWriter writer(JsonWriter::Layout::one_line);
  std::string text = writer.value(*this).text();
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  // Strip the quotes that quote() would double. Its escaping makes the text safe to print.
  const std::string shown = quote(text);
  return shown.substr(1, shown.size() - 2);
}

}  // namespace fp8kv
