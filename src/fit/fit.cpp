#include "fit/fit.h"

#include <algorithm>

#include "base/text.h"
#include "data/dataset.h"
#include "fit/fit_candidates.h"
#include "fit/fit_search.h"
#include "fit/layer_costs.h"

namespace fp8kv {
namespace {

ModelCache cache_of(const FitFormat& format, const ModelConfig& config, std::vector<int64_t> left) {
  ModelCache cache = format.type;
  cache.left_in = config.dtype;
  cache.left = std::move(left);
  return cache;
}

// Fills in the bytes that the format saves in each layer.
void add_saved(const ModelConfig& config, const FitOptions& options, const FitFormat& format,
               FormatCosts& costs) {
  const uint64_t all = options.bytes(cache_of(format, config, format.always_left));
  for (LayerCost& each : costs.layers) {
    std::vector<int64_t> left = format.always_left;
    left.insert(std::lower_bound(left.begin(), left.end(), each.layer), each.layer);
    const uint64_t without = options.bytes(cache_of(format, config, std::move(left)));
    each.saved = without > all ? without - all : 0;
  }
}

}  // namespace

void fit(const ModelOnBackend& model, const FitText& text, const FitOptions& options,
         FitReport& report, Log& log) {
  const ModelConfig& config = model.config;
  report.cost_tokens = tokens_in(text.costs);
  report.confirming_tokens = tokens_in(text.confirm);
  report.baseline_bytes = options.bytes(CacheType(config.dtype));
  report.baseline_bytes_per_token = kv_bytes_per_token(config, CacheType(config.dtype));
  report.costs = layer_costs(model, text.costs, report.formats,
                             {.threads = options.threads, .kept = options.kept}, log);
  for (size_t i = 0; i < report.formats.size(); ++i) {
    add_saved(config, options, report.formats[i], report.costs[i]);
  }
  const auto count_bytes = [&](FitPoint& point) {
    const ModelCache cache = cache_of(report.formats[point.format], config, point.left);
    point.bytes = options.bytes(cache);
    point.bytes_per_token = kv_bytes_per_token(config, cache);
  };
  FitSearch search({report.formats, report.costs, report.budget, options.mixes, count_bytes});
  for (;;) {
    const std::vector<FitPoint> points = search.next();
    if (points.empty()) break;
    std::vector<CandidateReport> candidates;
    for (const FitPoint& each : points) {
      candidates.push_back(fit_candidate(report.formats[each.format], each.left));
    }
    MeasuredCaches measured = measure_caches(model, text.confirm, std::move(candidates),
                                             {.doing = cat("confirming ", points.size()),
                                              .threads = options.threads,
                                              .kept = options.kept},
                                             log);
    report.baseline = measured.baseline;
    std::vector<ConfirmedPoint> confirmed;
    for (size_t i = 0; i < points.size(); ++i) {
      MeasuredCache& of = measured.caches[i];
      confirmed.push_back({points[i], of.total, std::move(of.parts)});
    }
    search.tell(confirmed);
  }
  report.points = search.points();
  report.chosen = search.chosen();
}

}  // namespace fp8kv
