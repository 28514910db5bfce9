#include "scales/write/fate_of_copy.h"

#include "base/error.h"
#include "core/scales/scales.h"
#include "scales/write/inject.h"

namespace fp8kv {
namespace {

// One scale for K and one for V in every layer with a cache. Rules do not look at values.
KvScales any_scales(const ModelConfig& config) {
  KvScales scales;
  scales.latent = config.latent.has_value();
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    scales.layers.push_back(config.writes_cache(i) ? LayerScales{{1.0f}, {1.0f}} : LayerScales{});
  }
  return scales;
}

}  // namespace

CopyFate fate_of_copy(const Checkpoint& checkpoint, const ModelConfig& config,
                      const ChosenRuntime& runtime) {
  using Use = CopyFate::Use;
  try {
    const FactSet facts = injected_facts(checkpoint, any_scales(config), "portable");
    const RuntimeRule& rule = *runtime_verdict(facts, *runtime.column, runtime.number).rule;
    if (!knows_model(facts, *runtime.column, runtime.number)) return {Use::no_model, rule.sentence};
    // Other rules are about the form of the folder, which may have another.
    if (rule.families == FamilySet{}) return {};
    const bool stops = rule.outcome == RuntimeOutcome::fails && rule.with == FactSet{Fact::scales};
    if (stops || rule.outcome == RuntimeOutcome::ignores) return {Use::useless, rule.sentence};
    if (rule.outcome == RuntimeOutcome::unknown) return {Use::unknown, rule.sentence};
    return {};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return {};
  }
}

}  // namespace fp8kv
