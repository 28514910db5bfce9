#include "fit/layer_costs.h"

#include <algorithm>

#include "base/text.h"
#include "data/dataset.h"
#include "fit/fit_candidates.h"

namespace fp8kv {
namespace {

// One format in one layer, or in all layers.
struct Alone {
  size_t format = 0;
  int64_t layer = -1;  // -1: in all layers
};

std::vector<int64_t> cached_layers(const ModelConfig& config, const FitFormat& format) {
  std::vector<int64_t> layers;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const auto& always = format.always_left;
    const bool left = std::binary_search(always.begin(), always.end(), i);
    if (config.writes_cache(i) && !left) layers.push_back(i);
  }
  return layers;
}

// Lists all-layer entries first, then ascending layers, so that the candidates of a pass fork late.
std::vector<Alone> all_alone(const ModelConfig& config, const std::vector<FitFormat>& formats) {
  std::vector<Alone> all;
  for (size_t format = 0; format < formats.size(); ++format) {
    for (const int64_t layer : cached_layers(config, formats[format])) {
      all.push_back({format, layer});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Alone& a, const Alone& b) { return a.layer < b.layer; });
  std::vector<Alone> uniform;
  for (size_t format = 0; format < formats.size(); ++format) uniform.push_back({format, -1});
  all.insert(all.begin(), uniform.begin(), uniform.end());
  return all;
}

std::vector<int64_t> left_by(const ModelConfig& config, const FitFormat& format,
                             const Alone& alone) {
  if (alone.layer < 0) return format.always_left;
  std::vector<int64_t> left;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    if (config.writes_cache(i) && i != alone.layer) left.push_back(i);
  }
  return left;
}

size_t candidates_per_pass(const ModelConfig& config,
                           const std::vector<std::vector<int32_t>>& windows, uint64_t bytes) {
  constexpr uint64_t kMostBytes = sizeof(float);  // per activation
  const uint64_t row = static_cast<uint64_t>(config.stream_dim()) * kMostBytes;
  return std::max<size_t>(1, bytes / (row * tokens_in(windows)));
}

}  // namespace

std::vector<FormatCosts> layer_costs(const ModelOnBackend& model,
                                     const std::vector<std::vector<int32_t>>& windows,
                                     const std::vector<FitFormat>& formats,
                                     const CostOptions& options, Log& log) {
  const ModelConfig& config = model.config;
  const std::vector<Alone> all = all_alone(config, formats);
  const size_t most = candidates_per_pass(config, windows, options.stream_bytes);
  std::vector<FormatCosts> costs(formats.size());
  for (size_t begin = 0; begin < all.size(); begin += most) {
    const size_t end = std::min(all.size(), begin + most);
    std::vector<CandidateReport> candidates;
    for (size_t i = begin; i < end; ++i) {
      const FitFormat& format = formats[all[i].format];
      candidates.push_back(fit_candidate(format, left_by(config, format, all[i])));
    }
    const std::string part = end - begin == all.size() ? "" : cat(" ", end, " of ", all.size());
    const MeasuredCaches measured = measure_caches(
        model, windows, std::move(candidates),
        {.doing = "layers" + part, .threads = options.threads, .kept = options.kept}, log);
    for (size_t i = begin; i < end; ++i) {
      const TokenFigures& total = measured.caches[i - begin].total;
      FormatCosts& of = costs[all[i].format];
      if (all[i].layer < 0) {
        of.all_kld = total.kld;
        of.all_error = total.kld_error;
      } else {
        of.layers.push_back({all[i].layer, total.kld, total.kld_error});
      }
    }
  }
  return costs;
}

}  // namespace fp8kv
