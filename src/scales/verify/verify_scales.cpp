#include "scales/verify/verify_scales.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "checkpoint/model/quantised_tensors.h"
#include "scales/read/find_scales.h"
#include "scales/read/stores/open_store.h"
#include "scales/rules/runtime_caches.h"
#include "scales/scale_file.h"
#include "scales/verify/remedies.h"

namespace fp8kv {
namespace {

// The requested runtimes. If nobody chose them, only those that know the model, if any do.
std::vector<ChosenRuntime> asked_for(const VerifyRequest& request, FactSet facts) {
  if (!request.usual) return request.asked;
  std::vector<ChosenRuntime> asked;
  std::copy_if(request.asked.begin(), request.asked.end(), std::back_inserter(asked),
               [&](const ChosenRuntime& each) { return knows_model(facts, *each.column); });
  return asked.empty() ? request.asked : asked;
}

// The requested runtimes in the table's order. If nobody chose them, all others as well.
std::vector<VerifiedRuntime> listed(const VerifyRequest& request, FactSet facts) {
  const std::vector<ChosenRuntime> wanted = asked_for(request, facts);
  std::vector<VerifiedRuntime> runtimes;
  for (const RuntimeColumn& column : runtime_columns()) {
    bool asked = false;
    for (const ChosenRuntime& each : wanted) {
      if (each.column != &column) continue;
      const bool again = std::any_of(runtimes.begin(), runtimes.end(), [&](const auto& other) {
        return other.chosen.column == &column && other.chosen.version == each.version;
      });
      if (!again) runtimes.push_back({each, true, {}, {}, "", {}});
      asked = true;
    }
    if (!asked && request.usual) runtimes.push_back({{&column}, false, {}, {}, "", {}});
  }
  return runtimes;
}

// Adds each warning once, however many runtimes have it.
void add_warnings(const RuntimeFate& fate, std::vector<std::string>& warnings) {
  for (const LayerFate& each : fate.layers) {
    const bool again = std::find(warnings.begin(), warnings.end(), each.why) != warnings.end();
    if (each.subnormal && !again) warnings.push_back(each.why);
  }
}

// The verdict for a draft layer. A runtime that does not use the model's own scales does not use
// its drafts' scales. No runtime can use a scale that is 0 or negative.
DraftVerdict draft_fate(const DraftOnDisk& draft, const ChosenRuntime& chosen,
                        const RuntimeVerdict& of_model) {
  if (draft.facts.layer.kind == nullptr) {
    return {RuntimeOutcome::ignores, "reads none of draft layers from a scale file", ""};
  }
  DraftVerdict verdict = draft_verdict(draft.facts, *chosen.column, chosen.number);
  if (verdict.outcome != RuntimeOutcome::loads) return verdict;
  const RuntimeRule& rule = *of_model.rule;
  if (!uses_scales(rule)) {
    return {rule.outcome, cat("as the model's own scales: ", rule.sentence), rule.source};
  }
  if (draft.unusable.empty()) return verdict;
  return {RuntimeOutcome::misreads, draft.unusable, verdict.source};
}

void fill_in(VerifyReport& report, const std::string& path, const VerifyRequest& request) {
  report.runtimes = listed(request, report.scales.facts);
  const bool is_file = report.scales.facts.has(Fact::scale_file);
  report.arrives = !report.refusal;
  for (VerifiedRuntime& each : report.runtimes) {
    const RuntimeColumn& column = *each.chosen.column;
    each.fate = runtime_fate(report.scales, column, request.serving, each.chosen.number);
    for (const DraftOnDisk& draft : report.scales.drafts) {
      each.drafts.push_back(draft_fate(draft, each.chosen, each.fate.verdict));
    }
    const Server* server = find_server(column);
    if (each.fate.arrives && server) {
      const CacheFlag flag = asked_cache(request.serving.flag, report.scales.facts);
      each.serve =
          serve_command(*server, {.path = path,
                                  .is_file = is_file,
                                  .flag = flag,
                                  .skipped = skippable(each.chosen, report.scales.skipped),
                                  .drafter = report.scales.facts.family() == Family::drafter});
    }
    if (each.asked && !each.fate.arrives) report.arrives = false;
    if (each.asked) add_warnings(each.fate, report.warnings);
  }
}

void add_fixes(VerifyReport& report, const std::string& path, const ServingCase& serving,
               const std::vector<Reinjection>& made) {
  for (VerifiedRuntime& each : report.runtimes) {
    if (!each.asked || each.fate.arrives) continue;
    each.fixes = remedies(path, report.scales, each.chosen, serving, made);
  }
}

void take_origin(FoundScales found, VerifyReport& report) {
  report.dialect = std::move(found.dialect);
  report.provenance = std::move(found.scales.provenance);
  report.diagnoses = std::move(found.diagnoses);
}

}  // namespace

VerifyReport verify_scales(const std::filesystem::path& path, const VerifyRequest& request) {
  VerifyReport report;
  const SourceKind kind = source_kind(path);
  if (kind != SourceKind::scale_folder && kind != SourceKind::model_folder) {
    FoundScales found = scales_at(path);
    report.scales =
        with_context(quote(path.string()), [&] { return scales_on_disk(found.scales); });
    report.scales.skipped = found.scales.skipped;
    take_origin(std::move(found), report);
    fill_in(report, path.string(), request);
    add_fixes(report, path.string(), request.serving, {});
    return report;
  }
  const Checkpoint checkpoint = Checkpoint::open(path);
  checkpoint.check_is_hugging_face();
  check_quantised_tensors(checkpoint);
  FoundScales found = survey_scales(checkpoint);
  report.scales = scales_on_disk(checkpoint);
  report.scales.skipped = found.scales.skipped;
  if (found.refusal && !found.absent) report.refusal = found.refusal;
  const std::string named = checkpoint.named().string();
  fill_in(report, named, request);
  if (!report.arrives) {
    add_fixes(report, named, request.serving, reinjections(checkpoint, found, report.scales));
  }
  take_origin(std::move(found), report);
  checkpoint.check_unchanged();
  return report;
}

}  // namespace fp8kv
