#include "equalize/find_exponents.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "equalize/exponent_search.h"
#include "equalize/fold_places.h"

namespace fp8kv {
namespace {

// One search over heads that share exponents.
struct SearchJob {
  size_t layer = 0;
  size_t unit = 0;
};

float amax_of(std::span<const HeadSample> heads) {
  float amax = 0;
  for (const HeadSample& head : heads) {
    for (const float x : head.keys) amax = std::max(amax, std::abs(x));
  }
  return amax;
}

// The heads of a unit: one head if there are several units, else all heads.
std::span<const HeadSample> heads_of(const std::vector<HeadSample>& heads, size_t units,
                                     size_t unit) {
  return units == 1 ? std::span(heads) : std::span(heads).subspan(unit, 1);
}

}  // namespace

FactorCounts count_factors(std::span<const LayerFactors> layers) {
  FactorCounts counts;
  for (const LayerFactors& layer : layers) {
    counts.units += std::ssize(layer.exponents);
    counts.kept += std::count(layer.kept.begin(), layer.kept.end(), true);
    for (const Exponents& unit : layer.exponents) {
      for (const int exponent : unit) {
        counts.least = std::min(counts.least, exponent);
        counts.most = std::max(counts.most, exponent);
      }
    }
  }
  return counts;
}

std::vector<LayerFactors> find_exponents(const Checkpoint& checkpoint, const ModelConfig& config,
                                         std::span<const LayerSample> samples, KvFormat format,
                                         int threads, Log& log) {
  std::vector<LayerFactors> layers(samples.size());
  std::vector<AllowedExponents> allowed(samples.size());
  std::vector<SearchJob> jobs;
  for (size_t layer = 0; layer < samples.size(); ++layer) {
    const auto index = static_cast<int64_t>(layer);
    if (!config.writes_cache(index)) continue;
    LayerFactors& made = layers[layer];
    const int64_t units = fold_units(config, index);
    made.groups = channel_groups(config, index);
    made.exponents.assign(static_cast<size_t>(units), Exponents(made.groups.size()));
    made.ratios.assign(static_cast<size_t>(units), 1.0);
    made.kept.assign(static_cast<size_t>(units), false);
    allowed[layer] =
        exact_exponents(checkpoint, folded_tensors(checkpoint, config, index), units, made.groups);
    for (size_t unit = 0; unit < made.exponents.size(); ++unit) jobs.push_back({layer, unit});
  }
  Progress progress(log, "searching", jobs.size());
  ThreadPool pool(threads);
  // Runs a few jobs at a time, for progress and interrupts.
  const auto step = static_cast<size_t>(4 * pool.threads());
  for (size_t first = 0; first < jobs.size(); first += step) {
    const size_t count = std::min(step, jobs.size() - first);
    std::vector<uint8_t> kept(count);
    pool.run(static_cast<int64_t>(count), [&](int64_t job, int /*thread*/) {
      const auto [layer, unit] = jobs[first + static_cast<size_t>(job)];
      LayerFactors& made = layers[layer];
      const std::vector<HeadSample>& all = samples[layer].of(TextPart::search);
      const SearchOptions options{.format = format, .amax = amax_of(all)};
      const size_t units = made.exponents.size();
      const Exponents found =
          search_exponents(heads_of(all, units, unit), made.groups, allowed[layer][unit], options);
      const ErrorsOfHeads errors = errors_with(
          heads_of(samples[layer].of(TextPart::guard), units, unit), made.groups, found, options);
      made.ratios[unit] = errors.ratio();
      if (!holds_up(errors)) return;
      kept[static_cast<size_t>(job)] = 1;
      made.exponents[unit] = found;
    });
    for (size_t i = 0; i < count; ++i) {
      layers[jobs[first + i].layer].kept[jobs[first + i].unit] = kept[i] != 0;
    }
    progress.advance(count);
  }
  return layers;
}

}  // namespace fp8kv
