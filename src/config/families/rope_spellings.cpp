#include "config/families/rope_spellings.h"

#include <string>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {

std::optional<Json> type_of(const Json& scaling) {
  const auto type = scaling.find("rope_type");
  return type ? type : scaling.find("type");
}

std::optional<Json> find_scaling(const Json& text) {
  const auto old_spelling = text.find("rope_scaling");
  // An empty object counts as a missing one, like in transformers.
  const bool says = old_spelling && (!old_spelling->is_object() || old_spelling->size() > 0);
  const auto scaling = says ? old_spelling : text.find("rope_parameters");
  if (scaling && !scaling->is_object()) {
    fail(scaling->where(), ": is ", scaling->brief(), ", expected an object");
  }
  return scaling;
}

std::optional<Json> find_object_in(const Json& object) {
  for (size_t i = 0; i < object.size(); ++i) {
    if (object.value(i).is_object()) return object.value(i);
  }
  return std::nullopt;
}

void check_spellings(const Json& text, const RopeStyle& style) {
  const auto now = text.find("rope_parameters"), before = text.find("rope_scaling");
  if (!now || !now->is_object() || find_object_in(*now)) return;
  check_same(text.find(style.theta_key), now->find("rope_theta"));
  check_same(text.find(style.part_key), now->find("partial_rotary_factor"));
  if (!before || !before->is_object() || before->size() == 0) return;
  check_same(type_of(*before), type_of(*now));
  for (size_t i = 0; i < before->size(); ++i) {
    const std::string& key = before->key(i);
    if (key != "type" && key != "rope_type") check_same(before->find(key), now->find(key));
  }
}

namespace {

bool names_type(const std::string& key) {
  return key == "type" || key == "rope_type";
}

// Like Json::find, but does not mark the member as read.
std::optional<Json> glance_at(const Json& object, const std::string& key) {
  for (size_t i = 0; i < object.size(); ++i) {
    if (object.key(i) == key && !object.value(i).is_null()) return object.value(i);
  }
  return std::nullopt;
}

// Throws if the two objects contradict each other. Transformers 5.24 prefers the member in
// rope_scaling, and reads a type from 'rope_type' alone. Version 4.57 does not know
// rope_parameters. In both versions any other type overrides 'default'.
void check_joins(const Json& full, const Json& more) {
  const bool plain = full.get_string("rope_type", "") == "default" && more.has("rope_type");
  if (!plain) check_same(type_of(more), type_of(full));
  for (size_t i = 0; i < more.size(); ++i) {
    const std::string& key = more.key(i);
    if (!names_type(key)) check_same(glance_at(more, key), glance_at(full, key));
  }
}

}  // namespace

JoinedRope::JoinedRope(const Json& full, const Json& more) : parts_{full, more}, rope_(full) {
  check_joins(full, more);
  JsonWriter joined;
  joined.begin_object();
  for (size_t i = 0; i < full.size(); ++i) {
    if (!glance_at(more, full.key(i))) joined.member(full.key(i), full.value(i));
  }
  for (size_t i = 0; i < more.size(); ++i) {
    if (!more.value(i).is_null()) joined.member(more.key(i), more.value(i));
  }
  joined.end_object();
  rope_ = Json::parse(joined.text(), more.where(), JsonNumbers::python);
}

void JoinedRope::note_reads() const {
  for (const Json& part : parts_) {
    for (size_t i = 0; i < part.size(); ++i) {
      const std::string& key = part.key(i);
      const auto member = glance_at(rope_, key);
      if (member && reads_.has(*member)) part.find(key);
    }
  }
}

}  // namespace fp8kv
