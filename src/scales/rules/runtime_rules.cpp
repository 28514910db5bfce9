#include "scales/rules/runtime_rules.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "scales/rules/runtime_models.h"
#include "scales/rules/tables/rule_tables.h"

namespace fp8kv {
namespace {

// Each runtime's rows stand together, the oldest versions first.
std::span<const RuntimeColumn> columns() {
  static const RuntimeColumn kColumns[] = {
      {"vLLM", "0.7.2", "0.11", {0, 7, 2}, vllm_rules()},
      {"vLLM", "0.12", "0.14", {0, 12}, vllm_rules()},
      {"vLLM", "0.15", "0.16", {0, 15}, vllm_rules()},
      {"vLLM", "0.18", "0.20", {0, 18}, vllm_rules()},
      {"vLLM", "0.24", "0.24", {0, 24}, vllm_rules()},
      {"vLLM", "0.25", "0.26", {0, 25}, vllm_rules()},
      {"vLLM", "0.27", "0.28", {0, 27}, vllm_rules()},
      {"vLLM", "0.32", "", {0, 32}, vllm_rules()},
      {"SGLang", "", "0.5.18", {}, sglang_rules()},
      {"SGLang", "0.5.19", "", {0, 5, 19}, sglang_rules()},
      {"TGI", "branch of PR 2028", "branch of PR 2028", {}, tgi_branch_rules(), "pr-2028"},
      {"TGI", "2.4", "2.4", {2, 4}, tgi_rules()},
      {"TGI", "3.0", "", {3, 0}, tgi_rules()},
      {"transformers", "4.45", "4.46", {4, 45}, transformers_rules()},
      {"transformers", "4.49", "4.53", {4, 49}, transformers_rules()},
      {"transformers", "4.57", "4.57", {4, 57}, transformers_rules()},
      {"transformers", "5", "5.23", {5}, transformers_rules()},
      {"transformers", "5.24", "", {5, 24}, transformers_rules()},
      {"TensorRT-LLM", "engine builder", "engine builder", {}, trtllm_builder_rules(), "engine"},
      {"TensorRT-LLM", "PyTorch backend", "PyTorch backend", {}, trtllm_pytorch_rules(), "pytorch"},
  };
  return kColumns;
}

// The last version of a column. "0.16" includes every patch of 0.16.
RuntimeVersion last_of(const RuntimeColumn& column) {
  constexpr int kAny = std::numeric_limits<int>::max();
  const std::string_view newest = column.newest;
  if (newest.empty()) return {kAny};
  RuntimeVersion last = parse_runtime_version(newest).value();
  const auto dots = std::count(newest.begin(), newest.end(), '.');
  if (dots < 1) last.minor = kAny;
  if (dots < 2) last.patch = kAny;
  return last;
}

// Returns nullptr for a branch or a backend, because it has no versions.
const RuntimeRule* find_model_rule(FactSet facts, const RuntimeColumn& column,
                                   std::optional<RuntimeVersion> version) {
  if (*column.key) return nullptr;
  return model_rule(facts.model(), column.runtime, version.value_or(column.first),
                    version.value_or(last_of(column)));
}

}  // namespace

std::string versions_text(const RuntimeColumn& first, const RuntimeColumn& last) {
  const std::string oldest = first.oldest, newest = last.newest;
  if (oldest == newest) return oldest.empty() ? "all versions" : oldest;
  if (oldest.empty()) return "up to " + newest;
  return newest.empty() ? oldest + " and newer" : cat(oldest, " to ", newest);
}

std::string versions_text(const RuntimeColumn& column) {
  return versions_text(column, column);
}

std::string versions_text(const RuntimeColumn& first, const RuntimeColumn& last, FactSet facts) {
  const RuntimeVersion known = first_version(facts.model(), first.runtime);
  if (*first.key || known <= first.first) return versions_text(first, last);
  RuntimeColumn begins = first;
  const std::string oldest = runtime_version_text(known);
  begins.oldest = oldest.c_str();
  return versions_text(begins, last);
}

std::span<const RuntimeColumn> runtime_columns() {
  return columns();
}

std::vector<const RuntimeRule*> rules_of(const RuntimeColumn& column) {
  std::vector<const RuntimeRule*> rules;
  for (const RuntimeRule& rule : column.rules) {
    if (rule.is_of(column.first)) rules.push_back(&rule);
  }
  return rules;
}

RuntimeVerdict runtime_verdict(FactSet facts, const RuntimeColumn& column,
                               std::optional<RuntimeVersion> version) {
  RuntimeVerdict verdict{&column, nullptr, {}};
  for (const RuntimeRule* rule : rules_of(column)) {
    if (!rule->holds(facts)) continue;
    if (rule->outcome == RuntimeOutcome::note) {
      verdict.notes.push_back(rule);
    } else if (!verdict.rule) {
      verdict.rule = rule;
    }
  }
  FP8KV_ASSERT(verdict.rule);
  const RuntimeRule* of_model = find_model_rule(facts, column, version);
  if (of_model && of_model->outcome == RuntimeOutcome::note) {
    verdict.notes.push_back(of_model);
  } else if (of_model && verdict.rule->outcome != RuntimeOutcome::fails) {
    verdict = {&column, of_model, {}};
  }
  return verdict;
}

bool knows_model(FactSet facts, const RuntimeColumn& column,
                 std::optional<RuntimeVersion> version) {
  const RuntimeRule* rule = find_model_rule(facts, column, version);
  return !rule || rule->outcome == RuntimeOutcome::note;
}

std::vector<RuntimeVerdict> runtime_verdicts(FactSet facts) {
  std::vector<RuntimeVerdict> verdicts;
  for (const RuntimeColumn& column : columns()) verdicts.push_back(runtime_verdict(facts, column));
  return verdicts;
}

const RuntimeColumn* find_runtime_column(std::string_view runtime, RuntimeVersion version) {
  const RuntimeColumn* last = nullptr;
  for (const RuntimeColumn& column : columns()) {
    const bool has_versions = *column.key == '\0';
    if (has_versions && column.runtime == runtime && column.first <= version) last = &column;
  }
  return last;
}

std::optional<RuntimeVerdict> runtime_verdict(FactSet facts, std::string_view runtime,
                                              RuntimeVersion version) {
  const RuntimeColumn* column = find_runtime_column(runtime, version);
  if (!column) return std::nullopt;
  return runtime_verdict(facts, *column, version);
}

}  // namespace fp8kv
