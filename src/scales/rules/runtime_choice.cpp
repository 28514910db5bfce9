#include "scales/rules/runtime_choice.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

constexpr const char* kAll = "all";
constexpr RuntimeVersion kNewest = {std::numeric_limits<int>::max()};

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The runtimes' names in lower case, as users type them. Each appears once, in the table's order.
std::vector<std::string> runtime_names() {
  std::vector<std::string> names;
  for (const RuntimeColumn& column : runtime_columns()) {
    const std::string name = lower(column.runtime);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::vector<const RuntimeColumn*> columns_of(const std::string& name) {
  std::vector<const RuntimeColumn*> columns;
  for (const RuntimeColumn& column : runtime_columns()) {
    if (lower(column.runtime) == name) columns.push_back(&column);
  }
  return columns;
}

// The versions that may follow the @ of a runtime: "pr-2028 (branch of PR 2028), 2.4, 3.0 and
// newer".
std::string known_versions(const std::vector<const RuntimeColumn*>& columns) {
  std::vector<std::string> known;
  for (const RuntimeColumn* column : columns) {
    const std::string versions = versions_text(*column);
    known.push_back(*column->key ? cat(column->key, " (", versions, ")") : versions);
  }
  return join(known, ", ");
}

// Parses a version and drops its suffix: "0.33.0+cu129", "0.5.23.post1", "0.9.2rc1".
std::optional<RuntimeVersion> version_in(const std::string& text) {
  const size_t begin = text.starts_with('v') ? 1 : 0;
  size_t end = text.find_first_not_of("0123456789.", begin);
  if (end == text.npos) return parse_runtime_version(text);
  const bool is_suffix =
      text[end] == '+' || text[end] == '-' || (text[end] >= 'a' && text[end] <= 'z');
  if (!is_suffix) return std::nullopt;
  while (end > begin && text[end - 1] == '.') --end;
  return parse_runtime_version(text.substr(0, end));
}

[[noreturn]] void fail_unknown_runtime(const std::string& name) {
  const std::vector<std::string> names = runtime_names();
  throw Error(cat(quote(name), " is not a runtime", did_you_mean(name, names),
                  "; runtimes are: ", join(names)),
              "give NAME, NAME@VERSION, NAME@all or all", ErrorKind::usage);
}

[[noreturn]] void fail_unknown_version(const std::string& text,
                                       const std::vector<const RuntimeColumn*>& columns) {
  throw Error(cat(quote(text), " is no version that is known of ", columns[0]->runtime,
                  "; known are: ", known_versions(columns)),
              "see docs/runtimes.md", ErrorKind::usage);
}

const RuntimeColumn* newest_of(const std::vector<const RuntimeColumn*>& columns) {
  const RuntimeColumn* newest = find_runtime_column(columns[0]->runtime, kNewest);
  return newest ? newest : columns.back();
}

}  // namespace

std::vector<ChosenRuntime> choose_runtimes(const std::string& text) {
  const std::string asked = lower(text);
  std::vector<ChosenRuntime> chosen;
  if (asked == kAll) {
    for (const RuntimeColumn& column : runtime_columns()) chosen.push_back({&column});
    return chosen;
  }
  const size_t at = asked.find('@');
  const auto columns = columns_of(asked.substr(0, at));
  if (columns.empty()) fail_unknown_runtime(text.substr(0, at));
  if (at == asked.npos) return {{newest_of(columns)}};
  const std::string version = asked.substr(at + 1);
  for (const RuntimeColumn* column : columns) {
    if (version == kAll || (*column->key && version == column->key)) chosen.push_back({column});
  }
  if (!chosen.empty()) return chosen;
  const auto number = version_in(version);
  const RuntimeColumn* column =
      number ? find_runtime_column(columns[0]->runtime, *number) : nullptr;
  if (!column) fail_unknown_version(text, columns);
  return {{column, version, number}};
}

std::vector<ChosenRuntime> usual_runtimes() {
  std::vector<ChosenRuntime> chosen;
  for (const char* name : {"vllm", "sglang", "tgi"}) chosen.push_back(choose_runtimes(name)[0]);
  return chosen;
}

std::string runtime_text(const ChosenRuntime& chosen) {
  return cat(chosen.column->runtime, " ",
             chosen.version.empty() ? versions_text(*chosen.column) : chosen.version);
}

}  // namespace fp8kv
