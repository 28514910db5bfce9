// Reads and writes JSON, so that no other code needs a JSON library. A parsed value knows where it
// came from: a wrong type or a missing key is an error that names the file and the key. The writer
// is ordered, indented and exact.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fp8kv {

struct JsonDocument;
struct JsonNode;
class JsonReads;

// The numbers that a text may hold: those of JSON alone, or also NaN, Infinity and -Infinity.
// Python's json module writes these three, and so do programs that save a config.json with it.
enum class JsonNumbers { finite, python };

// A value of a parsed document. Copies are cheap and keep the document alive.
class Json {
 public:
  // Parses strict JSON (RFC 8259). Throws with line and column for malformed text, duplicate keys,
  // more than 128 levels of nesting or invalid UTF-8. `source` is the name for messages.
  static Json parse(std::string_view text, const std::string& source,
                    JsonNumbers numbers = JsonNumbers::finite);
  // Parses line `number` (from 1) of a JSON-lines file. Messages have the line number of the file.
  static Json parse_line(std::string_view line, size_t number, const std::string& label);
  // Reads a regular file. Throws for malformed text, and, with a remedy, for a git-LFS pointer.
  static Json read(const std::filesystem::path& path, JsonNumbers numbers = JsonNumbers::finite,
                   uint64_t max_bytes = uint64_t(1) << 30);

  bool is_null() const;
  bool is_bool() const;
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  // Each throws if the value has another type: "config.json: hidden_size: is a string, expected an
  // integer". `as_int` accepts 4096 and 4096.0, and rejects numbers beyond int64. `as_double`
  // returns NaN and infinities if JsonNumbers allows them.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  // A number as written in the document.
  std::string number_text() const;

  // The number of elements of an array or members of an object; 0 for anything else.
  size_t size() const;
  // An element of an array. REQUIRES index < size().
  Json operator[](size_t index) const;
  // A member of an object, in document order. Throws if this is not an object. REQUIRES index <
  // size().
  const std::string& key(size_t index) const;
  Json value(size_t index) const;

  // Members by name. find: nullopt if the member is absent or null, or if this is not an object.
  // at: throws, naming the key.
  std::optional<Json> find(std::string_view key) const;
  Json at(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }

  int64_t get_int(std::string_view key, int64_t otherwise) const;
  double get_double(std::string_view key, double otherwise) const;
  bool get_bool(std::string_view key, bool otherwise) const;
  std::string get_string(std::string_view key, std::string_view otherwise) const;

  // Returns this value, with members noted in `reads` when they are looked up by name, here and in
  // values below. The result must not outlive `reads`.
  Json noting(JsonReads& reads) const;

  // "config.json: rope_scaling.factor", for messages about this value.
  std::string where() const;
  // The value in one line, cut at 80 bytes: the "found" part of messages.
  std::string brief() const;

 private:
  friend class JsonReads;
  Json(std::shared_ptr<const JsonDocument> document, const JsonNode* node, std::string path,
       JsonReads* reads = nullptr)
      : document_(std::move(document)), node_(node), path_(std::move(path)), reads_(reads) {}
  [[noreturn]] void fail_type(const char* expected) const;

  std::shared_ptr<const JsonDocument> document_;
  const JsonNode* node_;
  std::string path_;
  JsonReads* reads_;
};

// Records which members of a document were looked up by name. The others were ignored.
class JsonReads {
 public:
  // A member that is null counts as looked up too.
  bool has(const Json& member) const { return nodes_.contains(member.node_); }

 private:
  friend class Json;
  std::unordered_set<const JsonNode*> nodes_;
};

// Writes JSON in the order of the calls, indented by two spaces, with arrays of numbers on one
// line. Numbers are the shortest decimals that read back as the same double, so floats also read
// back bit for bit. NaN and infinity are programmer errors.
class JsonWriter {
 public:
  enum class Layout { indented, one_line };
  explicit JsonWriter(Layout layout = Layout::indented) : layout_(layout) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int number) { return value(int64_t{number}); }
  JsonWriter& value(double number);
  JsonWriter& value(float number) { return value(double{number}); }
  JsonWriter& null();
  // Writes an array of numbers on one line.
  JsonWriter& value(std::span<const float> numbers);
  JsonWriter& value(std::span<const int64_t> numbers);
  JsonWriter& value(std::span<const std::string> texts);
  // Copies a parsed value unchanged.
  JsonWriter& value(const Json& parsed);

  template <typename T>
  JsonWriter& member(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  // The document, with a final newline if indented. REQUIRES that everything begun was ended.
  std::string text() const;

 private:
  struct Level {
    bool is_object;
    bool one_line;
    bool empty = true;
  };
  void before_value();
  void new_line();
  void open(bool is_object, char bracket);
  void close(bool is_object, char bracket);

  Layout layout_;
  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

// Sets `key` to the JSON value `value` in the object whose text is `text`, and leaves every other
// byte alone. An existing member is replaced in place, and a new one is appended in the style of
// the document. REQUIRES `text` to have been parsed as an object.
std::string json_with_member(std::string_view text, std::string_view key, std::string_view value);

// The document without the member `key` and one comma beside it; unchanged if there is no such
// member.
std::string json_without_member(std::string_view text, std::string_view key);

}  // namespace fp8kv
