#include "report/loss_places.h"

#include <cmath>

#include "base/text.h"
#include "core/scales/scales.h"
#include "draw/numbers.h"

namespace fp8kv {
namespace {

constexpr double kLeastShare = 0.1;
constexpr double kHeavyShare = 0.5;
constexpr uint64_t kHundredTokens = 100;  // of which one is a hundredth
constexpr float kFarther = 2;             // an octave

std::string mean_text(double mean, double error) {
  return cat(short_number(mean), " ± ", short_number(error, 2));
}

std::string percent(double share) {
  return cat(short_number(share * 100, 2), " %");
}

// Layers in which the first token's amax is far above that of later ones.
std::vector<size_t> farther(const std::vector<FirstTokenAmax>& layers, float FirstTokenAmax::*first,
                            float FirstTokenAmax::*later) {
  std::vector<size_t> found;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].*later > 0 && layers[i].*first >= kFarther * layers[i].*later) found.push_back(i);
  }
  return found;
}

}  // namespace

std::string loss_places_words(const TokenFigures& figures) {
  if (!std::isfinite(figures.kld) || !(figures.kld > 0)) return "";
  std::string words;
  const double all = figures.kld * static_cast<double>(figures.tokens);
  const double share = figures.first_kld * static_cast<double>(figures.first_tokens) / all;
  const double more = figures.first_kld - figures.later_kld;
  const double error = std::hypot(figures.first_kld_error, figures.later_kld_error);
  if (share >= kLeastShare && more > 2 * error && figures.first_tokens < figures.tokens) {
    words = cat("The first ", kFirstTokens, " tokens of a window (sinks) lose ",
                mean_text(figures.first_kld, figures.first_kld_error), " nats each, ",
                percent(share), " of the whole; later ones lose ",
                mean_text(figures.later_kld, figures.later_kld_error), ".");
  }
  if (figures.heavy_share < kHeavyShare || figures.tokens < kHundredTokens) return words;
  return cat(words, words.empty() ? "" : " ", "One token in a hundred carries ",
             percent(figures.heavy_share), " of the loss.");
}

std::string first_tokens_words(const std::vector<FirstTokenAmax>& layers) {
  std::vector<std::string> parts;
  const auto add = [&](const char* tensor, const std::vector<size_t>& found) {
    if (!found.empty()) parts.push_back(cat(tensor, " of ", layer_list(found)));
  };
  add("K", farther(layers, &FirstTokenAmax::k_first, &FirstTokenAmax::k_later));
  add("V", farther(layers, &FirstTokenAmax::v_first, &FirstTokenAmax::v_later));
  if (parts.empty()) return "";
  return cat(
      "The first token of a window, an attention sink, has the largest values by a factor of 2 "
      "or more: ",
      join(parts), ".");
}

}  // namespace fp8kv
