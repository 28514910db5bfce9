#include "checkpoint/linear_modules.h"

#include <algorithm>
#include <set>

#include "quant/module_pattern.h"

namespace fp8kv {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string_view last_name(std::string_view module) {
  return module.substr(module.rfind('.') + 1);
}

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_embedding(std::string_view name) {
  return name.find("embed") != name.npos || name == "wte" || name == "wpe";
}

}  // namespace

std::vector<std::string> linear_modules(const TensorMap& tensors) {
  std::vector<std::string> modules;
  for (const auto& [name, location] : tensors) {
    if (!name.ends_with(kWeight) || location.entry.shape.rank() < 2) continue;
    const std::string module = name.substr(0, name.size() - kWeight.size());
    if (!is_embedding(last_name(module))) modules.push_back(module);
  }
  return modules;
}

bool has_experts(const TensorMap& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.first.find(".experts.") != std::string::npos;
  });
}

std::vector<std::string> ignore_patterns(std::span<const std::string> modules, bool experts) {
  std::set<std::string> patterns = {"lm_head"};
  if (experts) patterns.insert("re:.*experts$");
  for (const std::string& module : modules) {
    std::string name(last_name(module));
    if (name.size() == module.size()) {
      patterns.insert(module);
      continue;
    }
    if (name.ends_with("_proj")) {
      patterns.insert("re:.*_proj$");
      continue;
    }
    if (is_number(name)) {  // an index in a sequence, unclear without its parent
      const std::string_view parent = std::string_view(module).substr(0, module.rfind('.'));
      name = std::string(last_name(parent)) + "\\." + name;
    }
    patterns.insert("re:.*\\." + name + "$");
  }
  return {patterns.begin(), patterns.end()};
}

Ignored ignored(std::span<const std::string> ignore, std::string_view module) {
  Ignored result = Ignored::no;
  for (const std::string& entry : ignore) {
    const std::optional<bool> found = pattern_matches(entry, module);
    if (entry == "Linear" || (found && *found)) return Ignored::yes;
    if (!found) result = Ignored::unclear;
  }
  return result;
}

}  // namespace fp8kv
