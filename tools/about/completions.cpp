#include "about/completions.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

struct Shell {
  const char* name;
  std::string (*script)(const CommandTable& table);
};

constexpr Shell kShells[] = {
    {"bash", bash_completions}, {"zsh", zsh_completions}, {"fish", fish_completions}};

}  // namespace

std::vector<std::string> completion_shells() {
  std::vector<std::string> names;
  for (const Shell& each : kShells) names.emplace_back(each.name);
  return names;
}

std::string completions(const CommandTable& table, const std::string& shell) {
  for (const Shell& each : kShells) {
    if (each.name == shell) return each.script(table);
  }
  FP8KV_ASSERT(false);
}

std::string with_blanks(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string first_clause(const std::string& text) {
  return text.substr(0, std::min(text.find("; "), text.find(". ")));
}

}  // namespace fp8kv
