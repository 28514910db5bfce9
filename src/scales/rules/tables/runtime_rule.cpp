#include "scales/rules/tables/runtime_rule.h"

#include "base/text.h"

namespace fp8kv {

const char* runtime_outcome_name(RuntimeOutcome outcome) {
  using enum RuntimeOutcome;
  switch (outcome) {
    case loads:
      return "loads";
    case turns_on:
      return "turns FP8 on";
    case ignores:
      return "ignores";
    case misreads:
      return "misreads";
    case fails:
      return "fails";
    case unknown:
      return "not known";
    case note:
      break;
  }
  return "note";
}

bool uses_scales(const RuntimeRule& rule) {
  const bool loads =
      rule.outcome == RuntimeOutcome::loads || rule.outcome == RuntimeOutcome::turns_on;
  return loads && !rule.at_one;
}

std::string rule_result(const RuntimeRule& rule) {
  const bool nvfp4 = rule.outcome == RuntimeOutcome::turns_on && rule.with.has(Fact::nvfp4_scheme);
  return cat(nvfp4 ? "turns NVFP4 on" : runtime_outcome_name(rule.outcome),
             rule.rounded ? ", rounded" : "", rule.at_one ? ", ignores" : "");
}

std::string runtime_version_text(RuntimeVersion version) {
  return cat(version.major, ".", version.minor, version.patch ? cat(".", version.patch) : "");
}

std::optional<RuntimeVersion> parse_runtime_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  int parts[3] = {};
  for (int i = 0; i < 3; ++i) {
    size_t digits = 0;
    while (digits < text.size() && digits < 6 && text[digits] >= '0' && text[digits] <= '9') {
      parts[i] = parts[i] * 10 + (text[digits++] - '0');
    }
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    if (text.empty()) return RuntimeVersion{parts[0], parts[1], parts[2]};
    if (text[0] != '.') return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace fp8kv
