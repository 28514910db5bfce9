#include "scales/rules/runtime_models.h"

#include <map>
#include <string>
#include <tuple>

#include "base/text.h"

namespace fp8kv {
namespace {

enum class Absence { before, since, ever, partly };

std::string sentence_of(const RuntimeModel& model, ListedRuntime runtime, Absence absence) {
  const KnownVersions& known = model.known[static_cast<size_t>(runtime)];
  const bool by_type = runtime == ListedRuntime::tgi || runtime == ListedRuntime::transformers;
  const std::string name(by_type ? model.model_type : model.architecture);
  if (absence == Absence::partly) {
    return cat("has the model ", name, " from ", runtime_version_text(known.since), " on");
  }
  const std::string when =
      absence == Absence::before  ? cat(" before ", runtime_version_text(known.since))
      : absence == Absence::since ? cat(" since ", runtime_version_text(known.before))
                                  : "";
  return cat("does not know the model ", name, when,
             runtime == ListedRuntime::transformers
                 ? ": stops, or runs code of the folder, which was not looked at"
                 : ": stops, or leaves it to transformers, which was not run");
}

struct MadeRule {
  std::string sentence, source;
  RuntimeRule rule = {{}, {}, RuntimeOutcome::unknown, nullptr, nullptr};  // points into both
};
using RuleKey = std::tuple<const RuntimeModel*, ListedRuntime, Absence>;

std::map<RuleKey, MadeRule> made_rules() {
  std::map<RuleKey, MadeRule> rules;
  for (const RuntimeModel& model : runtime_models()) {
    for (size_t i = 0; i < runtime_model_sources().size(); ++i) {
      const auto runtime = static_cast<ListedRuntime>(i);
      const RuntimeSource& source = runtime_model_sources()[i];
      for (const Absence absence :
           {Absence::before, Absence::since, Absence::ever, Absence::partly}) {
        MadeRule& made = rules[{&model, runtime, absence}];
        made.sentence = sentence_of(model, runtime, absence);
        made.source = cat(source.place, " of ", source.releases);
        made.rule.outcome =
            absence == Absence::partly ? RuntimeOutcome::note : RuntimeOutcome::unknown;
        made.rule.sentence = made.sentence.c_str();
        made.rule.source = made.source.c_str();
      }
    }
  }
  return rules;
}

const RuntimeRule* rule_of(const RuntimeModel& model, ListedRuntime runtime, Absence absence) {
  static const std::map<RuleKey, MadeRule> kMadeRules = made_rules();
  return &kMadeRules.at({&model, runtime, absence}).rule;
}

}  // namespace

std::string known_versions_text(const KnownVersions& known) {
  if (!known.ever) return "none";
  const bool begins = known.since == RuntimeVersion{},
             ends = known.before == KnownVersions{}.before;
  if (begins && ends) return "all";
  if (begins) return cat("before ", runtime_version_text(known.before));
  if (ends) return cat("from ", runtime_version_text(known.since));
  return cat(runtime_version_text(known.since), " up to ", runtime_version_text(known.before));
}

uint8_t runtime_model_number(std::string_view architecture, std::string_view model_type) {
  const auto models = runtime_models();
  for (size_t i = 0; i < models.size(); ++i) {
    const bool same = architecture.empty() ? models[i].model_type == model_type
                                           : models[i].architecture == architecture;
    if (same) return static_cast<uint8_t>(i + 1);
  }
  return 0;
}

RuntimeVersion first_version(uint8_t number, std::string_view runtime) {
  if (number == 0) return {};
  for (size_t i = 0; i < runtime_model_sources().size(); ++i) {
    if (runtime_model_sources()[i].runtime == runtime) {
      return runtime_models()[number - 1].known[i].since;
    }
  }
  return {};
}

const RuntimeRule* model_rule(uint8_t number, std::string_view runtime, RuntimeVersion first,
                              RuntimeVersion last) {
  if (number == 0) return nullptr;
  const RuntimeModel& model = runtime_models()[number - 1];
  for (size_t i = 0; i < runtime_model_sources().size(); ++i) {
    if (runtime_model_sources()[i].runtime != runtime) continue;
    const KnownVersions& known = model.known[i];
    const auto listed = static_cast<ListedRuntime>(i);
    // Some models bring their own code for transformers, so the table cannot say that it is
    // missing.
    if (!known.ever && listed == ListedRuntime::transformers) return nullptr;
    if (!known.ever) return rule_of(model, listed, Absence::ever);
    if (last < known.since) return rule_of(model, listed, Absence::before);
    const bool ends = known.before != KnownVersions{}.before;
    if (ends && known.before <= last) return rule_of(model, listed, Absence::since);
    if (first < known.since) return rule_of(model, listed, Absence::partly);
  }
  return nullptr;
}

}  // namespace fp8kv
