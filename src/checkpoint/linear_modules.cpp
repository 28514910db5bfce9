#include "checkpoint/linear_modules.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace fp8kv {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kRegex = "re:";

std::string_view last_name(std::string_view module) {
  return module.substr(module.rfind('.') + 1);
}

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_embedding(std::string_view name) {
  return name.find("embed") != name.npos || name == "wte" || name == "wpe";
}

// One character of an expression, and whether it may come any number of times.
struct Atom {
  char wanted = 0;
  bool any = false;
  bool repeated = false;
};

// nullopt for an expression of more than atoms. `whole` says whether it ends in "$".
std::optional<std::vector<Atom>> parse_atoms(std::string_view text, bool& whole) {
  if (text.starts_with('^')) text.remove_prefix(1);
  whole = text.ends_with('$') && !text.ends_with("\\$");
  if (whole) text.remove_suffix(1);
  std::vector<Atom> atoms;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '*') {
      if (atoms.empty() || atoms.back().repeated) return std::nullopt;
      atoms.back().repeated = true;
    } else if (c == '\\') {
      if (++at == text.size() || std::isalnum(static_cast<unsigned char>(text[at]))) {
        return std::nullopt;
      }
      atoms.push_back({.wanted = text[at]});
    } else if (std::string_view("[](){}+?|^$").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      atoms.push_back({.wanted = c, .any = c == '.'});
    }
  }
  return atoms;
}

// Time and memory in proportion to both lengths, whatever the expression.
bool matches(const std::vector<Atom>& atoms, std::string_view text, bool whole) {
  // reached[i]: the first i atoms can match the text so far.
  std::vector<char> reached(atoms.size() + 1);
  reached[0] = 1;
  const auto skip_repeated = [&] {
    for (size_t i = 0; i < atoms.size(); ++i) {
      if (reached[i] && atoms[i].repeated) reached[i + 1] = 1;
    }
  };
  skip_repeated();
  for (const char c : text) {
    if (!whole && reached.back()) return true;
    std::vector<char> next(atoms.size() + 1);
    for (size_t i = 0; i < atoms.size(); ++i) {
      if (!reached[i] || !(atoms[i].any || atoms[i].wanted == c)) continue;
      next[atoms[i].repeated ? i : i + 1] = 1;
    }
    reached = std::move(next);
    skip_repeated();
  }
  return reached.back() != 0;
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
    if (is_number(name)) {  // of a sequence, which only its own name tells from a layer
      const std::string_view parent = std::string_view(module).substr(0, module.rfind('.'));
      name = std::string(last_name(parent)) + "\\." + name;
    }
    patterns.insert("re:.*\\." + name + "$");
  }
  return {patterns.begin(), patterns.end()};
}

std::optional<bool> pattern_matches(std::string_view pattern, std::string_view module) {
  if (!pattern.starts_with(kRegex)) return pattern == module;
  bool whole = false;
  const auto atoms = parse_atoms(pattern.substr(kRegex.size()), whole);
  if (!atoms) return std::nullopt;
  return matches(*atoms, module, whole);
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
