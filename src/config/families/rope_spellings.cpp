#include "config/families/rope_spellings.h"

#include <string>

#include "base/error.h"
#include "config/describe/config_values.h"

namespace fp8kv {

std::optional<Json> type_of(const Json& scaling) {
  const auto type = scaling.find("rope_type");
  return type ? type : scaling.find("type");
}

std::optional<Json> find_scaling(const Json& text) {
  const auto old_spelling = text.find("rope_scaling");
  // An empty object says nothing, as in transformers.
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

// transformers 5 adds rope_scaling to the rope of the layers without a window, and version 4 knows
// no rope_parameters: what the two say has to be one.
void check_scaling_repeats(const Json& text, const Json& parameters) {
  const auto before = text.find("rope_scaling");
  if (!before || !before->is_object()) return;
  const auto full = parameters.find("full_attention");
  for (size_t i = 0; i < before->size(); ++i) {
    const std::string& key = before->key(i);
    const bool type = key == "type" || key == "rope_type";
    const Json said = before->value(i);
    const auto now = !full ? std::nullopt : type ? type_of(*full) : full->find(key);
    if (said.is_null()) continue;
    if (now) check_same(said, now);
    if (now) continue;
    throw Error(cat(said.where(), ": is ", said.brief(), ", but ", parameters.where(),
                    ".full_attention does not say so"),
                "write the whole rope in rope_parameters and take rope_scaling out: versions of "
                "transformers differ in which they read");
  }
}

}  // namespace fp8kv
