#include "calib/calibrated_scales.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "calib/calibration_run.h"
#include "calib/measure/expert_reach.h"
#include "calib/rounds.h"
#include "calib/work_note.h"
#include "checkpoint/drafts/draft_model.h"
#include "policy/make_scales.h"

namespace fp8kv {
namespace {

// Collects magnitudes from the windows. If the run ends early, reports how many layers `state` has
// kept.
Rounds collect_windows(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                       const Windows& windows, Log& log, const RoundOptions& options) {
  const CalibrationState* state = options.collect.state;
  try {
    return collect_in_rounds({checkpoint, config, backend}, windows.ids, log, options);
  } catch (const Error& error) {
    const auto done = state ? static_cast<uint64_t>(state->saved_layers()) : 0;
    if (done == 0) throw;
    const std::string kept = count_of(done, "layer");
    if (error.kind() == ErrorKind::interrupted) {
      throw Error(cat("interrupted with ", kept, " done"), "the same command goes on from there",
                  ErrorKind::interrupted);
    }
    if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::resource) {
      log.note(cat(kept, " done, kept in ", quote(state->path().string()),
                   ": the same command goes on from there"));
    }
    throw;
  }
}

// Notes the host memory of what a drafter reads, if it is much.
void say_hidden_states(const ModelConfig& target, const Backend& backend, const Windows& windows,
                       Log& log) {
  const uint64_t bytes = windows.tokens * static_cast<uint64_t>(kDrafterStates * target.dim) *
                         dtype_bytes(backend.activation_dtype(target.dtype));
  if (bytes < uint64_t{1} << 30) return;
  log.note(cat("the target's hidden states take up to ", human_bytes(bytes), " of host memory"));
}

void say_settled(const Rounds& rounds, Log& log) {
  const std::string taken = count_of(rounds.windows, "window");
  if (rounds.growth && rounds.growth->share <= kSettledGrowth) {
    return log.note(cat("took ", taken, ": amax has settled"));
  }
  const std::string unsettled = cat("amax has not settled in ", taken);
  if (rounds.windows == kMostWindows) {
    return log.warn(
        cat(unsettled, ", the most that are taken; --samples ", 2 * kMostWindows, " takes more"));
  }
  log.warn(cat(unsettled, ", which is all of the text; add data"));
}

// The draft layers to measure. Warns on `log` of those that cannot be measured.
std::vector<DraftModel> drafts_of(const Checkpoint& checkpoint, const ModelConfig& config,
                                  const CalibrationRun& run, Log& log) {
  if (run.drafter) return {};
  DraftModels drafts = read_draft_models(checkpoint, config);
  const auto warn = [&](const std::string& why) {
    log.warn(cat(why, "; no scale is made for its cache, where runtimes then use 1"));
  };
  for (const std::string& why : drafts.left_out) warn(why);
  if (!run.inputs) return drafts.measured;
  for (const DraftModel& draft : drafts.measured) {
    warn(cat("draft layer ", draft.layer.name,
             ": is not measured together with what matrices multiply"));
  }
  return {};
}

void add_drafts(const std::vector<DraftModel>& drafts, const CollectedMagnitudes& collected,
                const Policy& policy, KvScales& scales, Log& log) {
  for (size_t i = 0; i < drafts.size(); ++i) {
    const std::string& name = drafts[i].layer.name;
    if (!collected.drafts[i].has_cache()) {
      log.warn(
          cat("draft layer ", name, ": no window has two tokens; no scale is made for its cache"));
      continue;
    }
    const Policy own = without_losses(policy);
    if (own.kind != policy.kind) {
      log.note(cat("draft layer ", name,
                   ": losses are not measured there; its scales are those of ",
                   quote(policy_name(own))));
    }
    const KvScales made = make_scales({collected.drafts[i]}, own, scales.latent, scales.format);
    scales.drafts.push_back({name, made.layers[0], made.provenance.amax[0]});
  }
}

}  // namespace

Calibrated calibrated_scales(const Checkpoint& checkpoint, const ModelConfig& config,
                             Backend& backend, const CalibrationRun& run, Log& log) {
  const Checkpoint& measured = run.drafter ? run.drafter->checkpoint : checkpoint;
  const ModelConfig& of_scales = run.drafter ? run.drafter->config : config;
  const ModelIdentity identity = whole_identity(measured, of_scales);
  const char* less = backend.memory() ? "use a smaller --max-memory or --seq-len, or free memory"
                                      : "use fewer --samples or a smaller --seq-len";
  const size_t least = run.until_settled ? 2 * kFirstRound : run.windows.ids.size();
  if (!run.inputs) {  // timing would count as a product of the model in `inputs`
    const bool losses = run.policy.kind->needs == PolicyNeeds::losses;
    if (const auto work = work_note(config, backend, run.windows, least)) {
      log.note(
          cat(*work, losses ? "; measuring losses takes up to three times as long again" : ""));
    }
  }
  if (run.drafter) say_hidden_states(config, backend, run.windows, log);
  const bool each_head = run.policy.kind->sharing == ScaleSharing::head;
  const std::vector<DraftModel> drafts = drafts_of(checkpoint, config, run, log);
  Rounds rounds = with_way_out(less, [&] {
    return collect_windows(checkpoint, config, backend, run.windows, log,
                           {.collect = {.max_memory = {run.max_memory, "--max-memory"},
                                        .state = run.state,
                                        .inputs = run.inputs,
                                        .losses = run.policy.kind->needs == PolicyNeeds::losses,
                                        .drafts = drafts,
                                        .drafter = run.drafter},
                            .first_round = run.until_settled ? kFirstRound : 0,
                            .growth = each_head ? GrowthOf::head : GrowthOf::layer});
  });
  CollectedMagnitudes& collected = rounds.collected;
  const bool all = rounds.windows == run.windows.ids.size();
  const Windows windows = all ? run.windows : first_windows(run.windows, rounds.windows);
  if (run.until_settled) say_settled(rounds, log);
  if (const auto unreached = unreached_experts(of_scales, collected.reached)) log.note(*unreached);
  const bool latent = of_scales.latent.has_value();
  Calibrated made{make_scales(collected.layers, run.policy, latent, run.format), {}};
  made.scales.skipped = run.skipped;
  add_drafts(drafts, collected, run.policy, made.scales, log);
  add_calibration(of_scales, identity,
                  {.windows = windows, .parts = std::move(collected.parts), .shards = run.shards},
                  made.scales);
  warn_of_zeros(made.scales, log);
  made.magnitudes = std::move(collected.layers);
  return made;
}

}  // namespace fp8kv
