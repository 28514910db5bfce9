#include "calib/rounds.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "calib/calibration_state.h"
#include "data/dataset.h"
#include "data/text_parts.h"

namespace fp8kv {
namespace {

using WindowIds = std::vector<std::vector<int32_t>>;

AmaxAfter amax_after(const WindowIds& windows, size_t count, const CollectedMagnitudes& collected) {
  AmaxAfter after{tokens_in(std::span(windows).first(count)), {}};
  for (const LayerMagnitudes& layer : collected.layers) after.layers.push_back(layer_amax(layer));
  return after;
}

std::string growth_line(const AmaxAfter& before, const AmaxAfter& after, const AmaxGrowth& growth) {
  const std::string text = cat(grouped(after.tokens), " tokens: amax ");
  const std::string since = cat(" since ", grouped(before.tokens));
  if (growth.share == 0) return cat(text, "grew nowhere", since);
  if (std::isinf(growth.share)) return cat(text, "of ", growth.where(), " was 0", since);
  return cat(text, "grew by ", fixed(growth.share * 100, 1), " % at most", since, " (",
             growth.where(), ")");
}

}  // namespace

Rounds collect_in_rounds(const ModelOnBackend& model, const WindowIds& windows, Log& log,
                         const RoundOptions& options) {
  FP8KV_ASSERT(!windows.empty());
  CalibrationState* state = options.collect.state;
  const size_t first_round = options.first_round > 0 ? options.first_round : windows.size();
  Round round{0, std::min(first_round, windows.size())};
  if (state) {
    if (auto saved = state->find_round(model.config)) round = std::move(*saved);
  }
  Rounds found;
  for (;;) {
    if (state) state->begin_round(round);
    const auto begin = windows.begin() + static_cast<std::ptrdiff_t>(round.first);
    WindowIds now(begin, begin + static_cast<std::ptrdiff_t>(round.count));
    CollectOptions collect_options = options.collect;
    collect_options.parts = put_parts_first(now);
    found.collected = std::move(round.before);
    const AmaxAfter before = amax_after(windows, round.first, found.collected);
    add_up(found.collected, collect(model, now, log, collect_options));
    found.windows = round.first + round.count;
    if (round.first > 0) {
      const AmaxAfter after = amax_after(windows, found.windows, found.collected);
      found.growth = amax_growth(before, after, options.growth);
      log.note(growth_line(before, after, *found.growth));
      if (found.growth->share <= kSettledGrowth) return found;
    }
    if (found.windows == windows.size()) return found;
    round = {found.windows, std::min(found.windows, windows.size() - found.windows),
             found.collected};
  }
}

}  // namespace fp8kv
