#include "quant/module_pattern.h"

#include <cctype>
#include <utility>
#include <vector>

namespace fp8kv {
namespace {

constexpr std::string_view kRegex = "re:";

// One character of an expression, and whether it may repeat any number of times.
struct Atom {
  char wanted = 0;
  bool any = false;
  bool repeated = false;
};

// Returns nullopt if the expression has more than atoms. Sets `whole` if it ends in "$".
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

// Time and memory grow with the product of both lengths, whatever the expression.
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

std::optional<bool> pattern_matches(std::string_view pattern, std::string_view module) {
  if (!pattern.starts_with(kRegex)) return pattern == module;
  bool whole = false;
  const auto atoms = parse_atoms(pattern.substr(kRegex.size()), whole);
  if (!atoms) return std::nullopt;
  return matches(*atoms, module, whole);
}

}  // namespace fp8kv
