#include "quant/quant_groups.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "quant/module_pattern.h"

namespace fp8kv {
namespace {

constexpr const char* kOtherModel = "config.json and the weights are not of the same model";

// Whether a target is a class of modules that, in some runtime, multiply by a matrix.
bool may_be_class_of_linear(std::string_view target) {
  const bool is_class =
      !target.empty() && target[0] >= 'A' && target[0] <= 'Z' && target.find('.') == target.npos;
  const auto has = [&](const char* part) { return target.find(part) != target.npos; };
  return is_class && (has("Linear") || has("Expert") || has("MoE") || has("Conv"));
}

std::string codes_text(bool is_int, int64_t bits) {
  return cat(is_int ? "integers" : "floats", " of ", count_of(static_cast<uint64_t>(bits), "bit"));
}

bool are_integers(const QuantisedMatrix& matrix) {
  switch (matrix.codes_as) {
    case WeightCodes::i8:
    case WeightCodes::words:
    case WeightCodes::words_down:
    case WeightCodes::words_shuffled:
      return true;
    default:
      return false;
  }
}

std::vector<std::string> texts_of(const std::optional<Json>& list) {
  std::vector<std::string> texts;
  if (!list || !list->is_array()) return texts;
  for (size_t i = 0; i < list->size(); ++i) texts.push_back((*list)[i].as_string());
  return texts;
}

}  // namespace

std::vector<QuantGroup> read_quant_groups(const std::optional<Json>& block) {
  std::vector<QuantGroup> groups;
  const auto listed = block ? block->find("config_groups") : std::nullopt;
  if (!listed || !listed->is_object() || block->get_string("format", "") == "dense") return groups;
  for (size_t i = 0; i < listed->size(); ++i) {
    const Json group = listed->value(i);
    const auto weights = group.is_object() ? group.find("weights") : std::nullopt;
    if (!weights || !weights->is_object()) continue;
    QuantGroup out;
    out.where = group.where();
    out.targets = texts_of(group.find("targets"));
    if (weights->has("num_bits")) out.bits = weights->get_int("num_bits", 0);
    out.type = weights->get_string("type", "");
    groups.push_back(std::move(out));
  }
  return groups;
}

std::optional<bool> is_for(const QuantGroup& group, const std::string& module) {
  bool unclear = false;
  for (const std::string& target : group.targets) {
    const auto found = pattern_matches(target, module);
    if (target == "Linear" || found.value_or(false)) return true;
    if (!found || may_be_class_of_linear(target)) unclear = true;
  }
  return unclear ? std::nullopt : std::optional(false);
}

void check_group_of(const std::vector<QuantGroup>& groups, const std::string& module,
                    const StoredWeight& weight, const std::string& source) {
  const std::string tensor = cat(source, ": tensor ", quote(weight.codes->name));
  for (const QuantGroup& group : groups) {
    const std::optional<bool> found = is_for(group, module);
    if (!found) return;
    if (!*found) continue;
    const bool is_int = are_integers(weight.matrix);
    const bool type_differs = !group.type.empty() && (group.type == "int") != is_int;
    const bool bits_differ = group.bits != 0 && group.bits != weight.matrix.bits;
    if (!type_differs && !bits_differ) return;
    throw Error(
        cat(tensor, ": is ", weight.form, ", ", codes_text(is_int, weight.matrix.bits), ", but ",
            group.where, ".weights has ", bits_differ ? cat("num_bits ", group.bits) : "",
            bits_differ && type_differs ? " and " : "",
            type_differs ? cat("type ", quote(group.type)) : ""),
        kOtherModel);
  }
  if (groups.empty()) return;
  std::vector<std::string> places;
  for (const QuantGroup& group : groups) places.push_back(group.where);
  throw Error(cat(tensor, ": is ", weight.form, ", but no target of ", join(places), " is for ",
                  quote(module)),
              kOtherModel);
}

void check_groups_used(const std::vector<QuantGroup>& groups,
                       const std::vector<std::string>& modules) {
  for (const QuantGroup& group : groups) {
    const bool used = std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
      return is_for(group, module).value_or(true);
    });
    if (used) continue;
    throw Error(
        cat(group.where, ".targets: ",
            group.targets.empty() ? "is empty" : cat("no module is one of ", join(group.targets))),
        kOtherModel);
  }
}

}  // namespace fp8kv
