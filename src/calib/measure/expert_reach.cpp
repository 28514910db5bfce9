#include "calib/measure/expert_reach.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

// Names at most so many experts of a layer, and so many layers: enough to tell few from most.
constexpr size_t kMostNamed = 8;

// "2, 5 and 3 more"
std::string named(const std::vector<std::string>& all, const char* between) {
  std::string out;
  for (size_t i = 0; i < all.size() && i < kMostNamed; ++i) out += (i > 0 ? between : "") + all[i];
  if (all.size() > kMostNamed) out += cat(between, "and ", all.size() - kMostNamed, " more");
  return out;
}

}  // namespace

std::optional<std::string> unreached_experts(const ModelConfig& config,
                                             const std::vector<std::vector<uint64_t>>& reached) {
  size_t n_experts = 0, n_unreached = 0;
  std::vector<std::string> layers;
  for (size_t i = 0; i < reached.size(); ++i) {
    const std::vector<uint64_t>& tokens = reached[i];
    // Experts without matrices come last.
    const size_t experts =
        tokens.size() - static_cast<size_t>(config.experts ? config.experts->identities : 0);
    // The last layer that runs may stop before its experts.
    const bool has_run =
        std::any_of(tokens.begin(), tokens.end(), [](uint64_t n) { return n > 0; });
    if (config.layer(static_cast<int64_t>(i)).feed_forward != FeedForward::experts || !has_run) {
      continue;
    }
    std::vector<std::string> missing;
    for (size_t expert = 0; expert < experts; ++expert) {
      if (tokens[expert] == 0) missing.push_back(cat(expert));
    }
    n_experts += experts;
    n_unreached += missing.size();
    if (!missing.empty()) layers.push_back(cat("layer ", i, ": ", named(missing, ", ")));
  }
  if (n_unreached == 0) return std::nullopt;
  return cat("no token reached ", n_unreached, " of ", n_experts,
             " experts: ", named(layers, "; "));
}

}  // namespace fp8kv
