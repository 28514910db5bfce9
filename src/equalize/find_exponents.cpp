#include "equalize/find_exponents.h"

#include <algorithm>
#include <cmath>

#include "base/machine/thread_pool.h"
#include "base/text.h"
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

bool any_exponent(const Exponents& unit) {
  return std::any_of(unit.begin(), unit.end(), [](int exponent) { return exponent != 0; });
}

// Searches the units of all layers, a few at a time.
class ExponentFinder {
 public:
  ExponentFinder(std::span<const LayerSample> samples, const FindOptions& options)
      : samples_(samples),
        options_(options),
        layers_(samples.size()),
        allowed_(samples.size()),
        pool_(options.threads) {}

  // Prepares a layer, with exponents of an earlier run if these are kept.
  void add(const Checkpoint& checkpoint, const ModelConfig& config, size_t layer) {
    const auto index = static_cast<int64_t>(layer);
    const int64_t units = fold_units(config, index);
    LayerFactors& made = layers_[layer];
    made.groups = channel_groups(config, index);
    made.exponents.assign(static_cast<size_t>(units), Exponents(made.groups.size()));
    made.kept.assign(static_cast<size_t>(units), false);
    allowed_[layer] =
        exact_exponents(checkpoint, folded_tensors(checkpoint, config, index), units, made.groups);
    if (options_.kept != nullptr) {
      if (auto found = options_.kept->find(layer, allowed_[layer])) {
        made.exponents = std::move(*found);
        ++found_;
        return mark_kept(layer);
      }
    }
    for (size_t unit = 0; unit < made.exponents.size(); ++unit) jobs_.push_back({layer, unit});
  }

  std::vector<LayerFactors> run(Log& log) {
    if (found_ > 0) log.note(cat("took ", count_of(found_, "layer"), " of an earlier run"));
    Progress progress(log, "searching", jobs_.size());
    const auto step = static_cast<size_t>(4 * pool_.threads());  // for progress and interrupts
    for (size_t first = 0; first < jobs_.size(); first += step) {
      const size_t count = std::min(step, jobs_.size() - first);
      pool_.run(static_cast<int64_t>(count), [&](int64_t job, int /*thread*/) {
        search(jobs_[first + static_cast<size_t>(job)]);
      });
      for (size_t i = first; i < first + count; ++i) {
        if (i + 1 == jobs_.size() || jobs_[i + 1].layer != jobs_[i].layer) finish(jobs_[i].layer);
      }
      progress.advance(count);
    }
    return std::move(layers_);
  }

 private:
  // Leaves the unit without exponents unless those found hold up on the guard windows.
  void search(const SearchJob& job) {
    LayerFactors& made = layers_[job.layer];
    const LayerSample& sample = samples_[job.layer];
    const std::vector<HeadSample>& all = sample.of(TextPart::search);
    const SearchOptions options{.format = options_.format, .amax = amax_of(all)};
    const size_t units = made.exponents.size();
    const Exponents found = search_exponents(heads_of(all, units, job.unit), made.groups,
                                             allowed_[job.layer][job.unit], options);
    const ErrorsOfHeads errors = errors_with(heads_of(sample.of(TextPart::guard), units, job.unit),
                                             made.groups, found, options);
    if (holds_up(errors)) made.exponents[job.unit] = found;
  }

  void finish(size_t layer) {
    mark_kept(layer);
    if (options_.kept != nullptr) options_.kept->keep(layer, layers_[layer].exponents);
  }

  // Exponents that hold up are never all 0, since they lower the error.
  void mark_kept(size_t layer) {
    LayerFactors& made = layers_[layer];
    for (size_t unit = 0; unit < made.exponents.size(); ++unit) {
      made.kept[unit] = any_exponent(made.exponents[unit]);
    }
  }

  std::span<const LayerSample> samples_;
  const FindOptions& options_;
  std::vector<LayerFactors> layers_;
  std::vector<AllowedExponents> allowed_;
  std::vector<SearchJob> jobs_;
  uint64_t found_ = 0;  // layers of an earlier run
  ThreadPool pool_;
};

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
                                         std::span<const LayerSample> samples,
                                         const FindOptions& options, Log& log) {
  ExponentFinder finder(samples, options);
  for (size_t layer = 0; layer < samples.size(); ++layer) {
    if (config.writes_cache(static_cast<int64_t>(layer))) finder.add(checkpoint, config, layer);
  }
  return finder.run(log);
}

}  // namespace fp8kv
