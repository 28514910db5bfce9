#include "config/values/config_values.h"

#include <cmath>

#include "base/error.h"

namespace fp8kv {

std::string architecture_name(const Json& config) {
  const auto names = config.find("architectures");
  return names && names->size() > 0 ? (*names)[0].as_string() : "";
}

std::optional<Json> find_any(const Json& config, Spellings keys) {
  for (const char* key : keys) {
    if (const auto found = config.find(key)) return found;
  }
  return std::nullopt;
}

Json at_any(const Json& config, Spellings keys) {
  const auto found = find_any(config, keys);
  return found ? *found : config.at(*keys.begin());
}

int64_t layer_count(const Json& config) {
  constexpr const char* kEach[] = {"layers_block_type", "layer_types", "hybrid_override_pattern"};
  const auto number = find_any(config, kLayerCount);
  for (const char* key : kEach) {
    const auto each = config.find(key);
    if (number || !each) continue;
    const size_t count = each->is_string() ? each->as_string().size() : each->size();
    if (count >= 1 && count <= kMostLayers) return static_cast<int64_t>(count);
    fail(each->where(), ": is ", each->brief(), ", expected 1 to ", kMostLayers, " layers");
  }
  return in_range(at_any(config, kLayerCount), kMostLayers);
}

bool mentions(const Json& object, std::string_view key) {
  for (size_t i = 0; i < object.size(); ++i) {
    if (object.key(i) == key) return true;
  }
  return false;
}

bool is_on(const Json& config, const char* key) {
  const auto flag = config.find(key);
  if (!flag && mentions(config, key)) {
    throw Error(cat(config.where(), ": the key ", quote(key), " is null, expected true or false"),
                "write false where it is to be off, which null is in transformers");
  }
  return !flag || flag->as_bool();
}

void refuse_if_set(const Json& config, const char* key, const char* what) {
  const auto flag = config.find(key);
  if (flag && flag->as_bool()) fail(flag->where(), ": is true: ", what, " is not supported");
}

void check_says(const Json& text, const char* key, const char* expected, const char* what) {
  const auto said = text.find(key);
  if (!said || said->as_string() == expected) return;
  fail(said->where(), ": is ", said->brief(), ", expected ", quote(expected), ": no other ", what,
       " of this architecture is supported");
}

double positive_number(const Json& number) {
  const double value = number.as_double();
  if (!(value > 0) || !std::isfinite(value)) {
    fail(number.where(), ": is ", number.brief(), ", expected a positive number");
  }
  return value;
}

double positive_or(const Json& text, const char* key, double otherwise) {
  const auto number = text.find(key);
  return number ? positive_number(*number) : otherwise;
}

int64_t in_range(const Json& number, int64_t least, int64_t most) {
  const int64_t value = number.as_int();
  if (value < least || value > most) {
    fail(number.where(), ": is ", number.brief(), ", expected ", least, " to ", most);
  }
  return value;
}

void check_same(const std::optional<Json>& one, const std::optional<Json>& other) {
  if (!one || !other) return;
  const bool numbers = one->is_number() && other->is_number();
  if (numbers ? one->as_double() == other->as_double() : one->brief() == other->brief()) return;
  throw Error(
      cat(one->where(), ": is ", one->brief(), ", but ", other->where(), " is ", other->brief()),
      "take out the one that is wrong: programs differ in which they read");
}

}  // namespace fp8kv
