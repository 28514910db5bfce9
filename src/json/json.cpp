#include "json/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "json/json_document.h"

namespace fp8kv {
namespace {

const char* type_name(const Json& json) {
  if (json.is_null()) return "null";
  if (json.is_bool()) return "true or false";
  if (json.is_number()) return "a number";
  if (json.is_string()) return "a string";
  return json.is_array() ? "an array" : "an object";
}

}  // namespace

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
