#include "scales/write/arrival.h"

#include <cmath>

#include "base/text.h"
#include "scales/rules/runtime_caches.h"
#include "scales/rules/runtime_choice.h"
#include "scales/rules/serving.h"
#include "scales/scale_rounding.h"

namespace fp8kv {
namespace {

// The runtimes whose rules satisfy `holds`: "vLLM 0.15 and newer". Neighbouring versions are
// joined.
template <typename Holds>
std::vector<std::string> runtimes_where(FactSet facts, const Holds& holds) {
  std::vector<std::string> names;
  const std::vector<RuntimeVerdict> verdicts = runtime_verdicts(facts);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (!holds(*verdicts[i].rule)) continue;
    const RuntimeColumn& first = *verdicts[i].column;
    while (i + 1 < verdicts.size() && holds(*verdicts[i + 1].rule) &&
           std::string_view(first.runtime) == verdicts[i + 1].column->runtime) {
      ++i;
    }
    names.push_back(cat(first.runtime, " ", versions_text(first, *verdicts[i].column, facts)));
  }
  return names;
}

}  // namespace

ArrivalNotes rounding_notes(const KvScales& scales, FactSet facts, std::optional<DType> dtype) {
  ArrivalNotes out;
  if (dtype != DType::f16 && dtype != DType::bf16) return out;
  const auto rounds = [](const RuntimeRule& rule) { return uses_scales(rule) && rule.rounded; };
  const auto keeps = [](const RuntimeRule& rule) { return uses_scales(rule) && !rule.rounded; };
  const std::vector<std::string> rounding = runtimes_where(facts, rounds);
  if (rounding.empty()) return out;
  const ScaleRounding found = scale_rounding(scales, *dtype);
  const std::string who = join(rounding);
  const char* name = *dtype == DType::f16 ? "float16" : "bfloat16";
  if (found.error > 0) {
    out.notes.push_back(cat(who, ": scales are rounded to ", name, ", by up to ",
                            percent_text(found.error), " (layer ", found.farthest.layer, " ",
                            found.farthest.of, ")"));
  }
  const auto& told = found.lost ? found.lost : found.subnormal;
  if (!told) return out;
  const ScaleRounding raised = scale_rounding(at_powers_of_two(scales), *dtype);
  const bool helps = !raised.lost && !raised.subnormal;
  const std::vector<std::string> exact = runtimes_where(facts, keeps);
  out.warnings.push_back(cat(who, ": ", lost_text(*told, *dtype), "; ",
                             helps ? "a power of two survives: --scale-rounding power-of-two"
                             : exact.empty() ? "a model stored as bfloat16 has room for it"
                                             : cat(join(exact), ": kept as float32")));
  return out;
}

std::vector<std::string> loss_warnings(FactSet facts) {
  const std::vector<std::string> load = runtimes_where(facts, uses_scales);
  std::vector<std::string> warnings;
  const std::string instead = load.empty() ? "" : cat("; loaded by ", join(load));
  for (const ChosenRuntime& usual : usual_runtimes()) {
    const RuntimeRule& rule = *runtime_verdict(facts, *usual.column).rule;
    // Nobody serves a model with a runtime that does not know it.
    if (uses_scales(rule) || !knows_model(facts, *usual.column)) continue;
    // Names the newest versions that use the scales by the same rule.
    const auto same = [&](const RuntimeRule& other) { return &other == &rule; };
    warnings.push_back(cat(runtimes_where(facts, same).back(), ": ", rule.sentence, instead));
  }
  return warnings;
}

std::vector<ServeCommand> serve_commands(FactSet facts, const std::string& folder,
                                         std::span<const int64_t> skipped) {
  std::vector<ServeCommand> commands;
  if (facts.has(Fact::scale_file)) return commands;
  for (const ChosenRuntime& usual : usual_runtimes()) {
    if (!uses_scales(*runtime_verdict(facts, *usual.column).rule)) continue;
    const CacheFlag flag = asked_cache(CacheFlag::of_scales, facts);
    commands.push_back(
        {usual.column->runtime, serve_command(*find_server(*usual.column),
                                              {.path = folder,
                                               .flag = flag,
                                               .skipped = skippable(usual, skipped),
                                               .drafter = facts.family() == Family::drafter})});
  }
  return commands;
}

}  // namespace fp8kv
