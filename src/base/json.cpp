#include "base/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace fp8kv {

// One value. `number` texts are kept so that copying a document changes no digit.
struct JsonNode {
  enum class Type : uint8_t { null, boolean, number, string, array, object };
  Type type = Type::null;
  bool boolean = false;
  bool integer = false;  // number: fits int64
  int64_t integer_value = 0;
  double number = 0;
  std::string text;  // string: contents; number: as written
  std::vector<JsonNode> elements;
  std::vector<std::string> keys;  // object: one per element
};

struct Json::Document {
  std::string source;
  JsonNode root;
};

namespace {

constexpr size_t kDeepest = 128;

// Builds the tree from nlohmann's parser events; the parser itself is iterative, so nesting costs
// no stack until the limit is checked here.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(JsonNode& root, std::string_view text, const std::string& source)
      : text_(text), source_(source) {
    open_.push_back(&root);
  }

  bool null() override { return put({}); }
  bool boolean(bool flag) override {
    JsonNode node;
    node.type = JsonNode::Type::boolean;
    node.boolean = flag;
    return put(std::move(node));
  }
  bool number_integer(number_integer_t value) override {
    // Only what has a minus sign comes here, so that a zero was written "-0".
    if (value == 0) return number_float(-0.0, "-0");
    return put(integer_node(value, cat(int64_t{value})));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) {
      return put(integer_node(static_cast<int64_t>(value), cat(uint64_t{value})));
    }
    return number_float(static_cast<double>(value), cat(uint64_t{value}));
  }
  bool number_float(number_float_t value, const string_t& written) override {
    JsonNode node;
    node.type = JsonNode::Type::number;
    node.number = value;
    node.text = written;
    if (value == std::floor(value) && std::abs(value) < 9.0e15) {
      node.integer = true;
      node.integer_value = static_cast<int64_t>(value);
    }
    return put(std::move(node));
  }
  bool string(string_t& text) override {
    JsonNode node;
    node.type = JsonNode::Type::string;
    node.text = std::move(text);
    return put(std::move(node));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return start(JsonNode::Type::object); }
  bool start_array(size_t) override { return start(JsonNode::Type::array); }
  bool key(string_t& name) override {
    open_.back()->keys.push_back(std::move(name));
    return true;
  }
  bool end_object() override {
    std::unordered_set<std::string_view> seen;
    for (const std::string& name : open_.back()->keys) {
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
    // "... parse error at line 1, column 9: syntax error while ... - what; ...": keep the what.
    const std::string_view message = error.what();
    const size_t dash = message.find(" - ");
    std::string reason(dash == message.npos ? "syntax error" : message.substr(dash + 3));
    const size_t last_read = reason.find("; last read");
    if (last_read != reason.npos) reason.resize(last_read);
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const auto line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t line_start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    fail(source_, ": not valid JSON at line ", line, ", column ", position - line_start, ": ",
         reason);
  }

 private:
  static JsonNode integer_node(int64_t value, std::string written) {
    JsonNode node;
    node.type = JsonNode::Type::number;
    node.integer = true;
    node.integer_value = value;
    node.number = static_cast<double>(value);
    node.text = std::move(written);
    return node;
  }

  JsonNode& place(JsonNode node) {
    if (open_.size() == 1 && !root_placed_) {
      root_placed_ = true;
      *open_.back() = std::move(node);
      return *open_.back();
    }
    return open_.back()->elements.emplace_back(std::move(node));
  }
  bool put(JsonNode node) {
    place(std::move(node));
    return true;
  }
  bool start(JsonNode::Type type) {
    if (open_.size() > kDeepest) fail(source_, ": nested deeper than ", kDeepest, " levels");
    JsonNode node;
    node.type = type;
    // Pointers stay valid: a parent's vector grows only after its open child is closed.
    JsonNode& placed = place(std::move(node));
    open_.push_back(&placed);
    return true;
  }

  std::string_view text_;
  const std::string& source_;
  std::vector<JsonNode*> open_;
  bool root_placed_ = false;
};

const char* type_name(const JsonNode& node) {
  switch (node.type) {
    case JsonNode::Type::null:
      return "null";
    case JsonNode::Type::boolean:
      return "true or false";
    case JsonNode::Type::number:
      return "a number";
    case JsonNode::Type::string:
      return "a string";
    case JsonNode::Type::array:
      return "an array";
    case JsonNode::Type::object:
      return "an object";
  }
  return "?";
}

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

Json Json::parse(std::string_view text, const std::string& source) {
  auto document = std::make_shared<Document>();
  document->source = source;
  // The parser takes this byte for the end of the text and would not look at what follows.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    fail(source, ": not valid JSON: byte ", nul, " is NUL");
  }
  TreeBuilder builder(document->root, text, document->source);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    fail(source, ": not valid JSON");
  }
  const JsonNode* root = &document->root;
  return Json(std::move(document), root, "");
}

Json Json::read(const std::filesystem::path& path, uint64_t max_bytes) {
  return parse(read_text(path, max_bytes), quote(path.string()));
}

bool Json::is_null() const {
  return node_->type == JsonNode::Type::null;
}
bool Json::is_bool() const {
  return node_->type == JsonNode::Type::boolean;
}
bool Json::is_number() const {
  return node_->type == JsonNode::Type::number;
}
bool Json::is_string() const {
  return node_->type == JsonNode::Type::string;
}
bool Json::is_array() const {
  return node_->type == JsonNode::Type::array;
}
bool Json::is_object() const {
  return node_->type == JsonNode::Type::object;
}

void Json::fail_type(const char* expected) const {
  fail(where(), ": is ", type_name(*node_), " (", brief(), "), expected ", expected);
}

bool Json::as_bool() const {
  if (!is_bool()) fail_type("true or false");
  return node_->boolean;
}

int64_t Json::as_int() const {
  if (!is_number() || !node_->integer) fail_type("an integer");
  return node_->integer_value;
}

double Json::as_double() const {
  if (!is_number()) fail_type("a number");
  return node_->number;
}

const std::string& Json::as_string() const {
  if (!is_string()) fail_type("a string");
  return node_->text;
}

const std::string& Json::number_text() const {
  if (!is_number()) fail_type("a number");
  return node_->text;
}

size_t Json::size() const {
  return node_->elements.size();
}

Json Json::operator[](size_t index) const {
  FP8KV_ASSERT(index < size());
  return Json(document_, &node_->elements[index], cat(path_, "[", index, "]"));
}

const std::string& Json::key(size_t index) const {
  FP8KV_ASSERT(is_object() && index < size());
  return node_->keys[index];
}

Json Json::value(size_t index) const {
  const std::string& name = key(index);
  // Quoting guards messages against foreign names; ordinary keys stay bare.
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  const std::string shown = plain && !name.empty() ? name : quote(name);
  return Json(document_, &node_->elements[index], path_.empty() ? shown : path_ + "." + shown);
}

std::optional<Json> Json::find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  const auto at = std::find(node_->keys.begin(), node_->keys.end(), key);
  if (at == node_->keys.end()) return std::nullopt;
  Json found = value(static_cast<size_t>(at - node_->keys.begin()));
  if (found.is_null()) return std::nullopt;
  return found;
}

Json Json::at(std::string_view key) const {
  if (!is_object()) fail_type("an object");
  if (auto found = find(key)) return *found;
  if (std::find(node_->keys.begin(), node_->keys.end(), key) != node_->keys.end()) {
    fail(where(), ": the key ", quote(key), " is null");
  }
  fail(where(), ": the key ", quote(key), " is missing", did_you_mean(key, node_->keys));
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
  // Strip the quotes that quote() would double, and let it escape what is dangerous to print.
  const std::string shown = quote(text);
  return shown.substr(1, shown.size() - 2);
}

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

// The scanners below walk text that the parser has accepted, so they need no error paths.
namespace {

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) {
    ++at;
  }
  return at;
}

size_t skip_string(std::string_view text, size_t at) {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

size_t skip_value(std::string_view text, size_t at) {
  size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
    } else {
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at;
    }
  } while (depth > 0 || (at < text.size() &&
                         std::string_view(",}] \t\r\n").find(text[at]) == std::string_view::npos));
  return at;
}

}  // namespace

std::string json_with_member(std::string_view text, std::string_view key, std::string_view value) {
  size_t at = skip_space(text, 0) + 1;  // past the opening brace
  const size_t first_member = skip_space(text, at);
  size_t end_of_last = at;
  while (text[at = skip_space(text, at)] != '}') {
    const size_t name_end = skip_string(text, at);
    const std::string name = Json::parse(text.substr(at, name_end - at), "key").as_string();
    const size_t value_begin = skip_space(text, skip_space(text, name_end) + 1);
    const size_t value_end = skip_value(text, value_begin);
    if (name == key) {
      return cat(text.substr(0, value_begin), value, text.substr(value_end));
    }
    end_of_last = value_end;
    at = skip_space(text, value_end);
    if (text[at] == ',') ++at;
  }
  const bool empty = text[first_member] == '}';
  // The white space before the first member is the style of the document.
  const size_t brace_end = skip_space(text, 0) + 1;
  const std::string_view gap = text.substr(brace_end, first_member - brace_end);
  return cat(text.substr(0, end_of_last), empty ? "" : ",", empty ? "" : gap, escaped_string(key),
             ": ", value, text.substr(end_of_last));
}

std::string JsonWriter::text() const {
  FP8KV_ASSERT(levels_.empty() && !after_key_);
  return layout_ == Layout::indented ? out_ + "\n" : out_;
}

}  // namespace fp8kv
