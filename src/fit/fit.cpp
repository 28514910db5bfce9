#include "fit/fit.h"

#include <algorithm>

#include "base/text.h"
#include "data/dataset.h"
#include "eval/evaluate.h"
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

// Measures points on the held-out text.
class Confirmation {
 public:
  Confirmation(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
               const WindowIds& windows, int threads)
      : checkpoint_(checkpoint),
        config_(config),
        backend_(backend),
        windows_(windows),
        threads_(threads) {}

  std::vector<ConfirmedPoint> run(const std::vector<FitPoint>& points, FitReport& into, Log& log) {
    EvalReport report;
    report.config = config_;
    for (const FitPoint& each : points) {
      report.candidates.push_back(fit_candidate(into.formats[each.format], each.left));
    }
    evaluate(checkpoint_, backend_, windows_,
             {.baseline = config_.dtype,
              .greedy_tokens = 0,
              .layer_errors = false,
              .threads = threads_,
              .doing = cat("confirming ", points.size())},
             report, log);
    into.baseline = report.baseline.total;
    std::vector<ConfirmedPoint> confirmed;
    for (size_t i = 0; i < points.size(); ++i) {
      CandidateReport& of = report.candidates[i];
      confirmed.push_back({points[i], of.total, std::move(of.parts)});
    }
    return confirmed;
  }

 private:
  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  Backend& backend_;
  const WindowIds& windows_;
  int threads_;
};

}  // namespace

void fit(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
         const FitText& text, const FitOptions& options, FitReport& report, Log& log) {
  report.cost_tokens = tokens_in(text.costs);
  report.confirming_tokens = tokens_in(text.confirm);
  report.baseline_bytes = options.bytes(CacheType(config.dtype));
  report.baseline_bytes_per_token = kv_bytes_per_token(config, CacheType(config.dtype));
  report.costs = layer_costs(checkpoint, config, backend, text.costs, report.formats,
                             {.threads = options.threads}, log);
  for (size_t i = 0; i < report.formats.size(); ++i) {
    add_saved(config, options, report.formats[i], report.costs[i]);
  }
  const auto count_bytes = [&](FitPoint& point) {
    const ModelCache cache = cache_of(report.formats[point.format], config, point.left);
    point.bytes = options.bytes(cache);
    point.bytes_per_token = kv_bytes_per_token(config, cache);
  };
  FitSearch search({report.formats, report.costs, report.budget, options.mixes, count_bytes});
  Confirmation confirmation(checkpoint, config, backend, text.confirm, options.threads);
  for (;;) {
    const std::vector<FitPoint> points = search.next();
    if (points.empty()) break;
    search.tell(confirmation.run(points, report, log));
  }
  report.points = search.points();
  report.chosen = search.chosen();
}

}  // namespace fp8kv
