#include "text/sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

struct Choice {
  int32_t id;
  double weight;  // not normalised
};

// The likelier first; of equals, the lower id.
bool comes_before(const Choice& a, const Choice& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

int32_t draw(const std::vector<Choice>& choices, double total, double uniform) {
  double left = uniform * total;
  int32_t last = -1;
  for (const Choice& choice : choices) {
    if (choice.weight == 0) continue;
    last = choice.id;
    left -= choice.weight;
    if (left < 0) break;
  }
  return last;  // the last one, too, when rounding leaves something
}

[[noreturn]] void fail_option(const char* name, double value, const char* expected) {
  throw Error(cat(name, ": is ", value, ", expected ", expected), "", ErrorKind::usage);
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options, uint64_t sequence)
    : options_(options), rng_(Rng(Rng(options.seed).next() ^ sequence).next()) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    fail_option("temperature", double{options.temperature}, "a number from 0");
  }
  if (options.top_k < 0) fail_option("top_k", double(options.top_k), "an integer from 0");
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    fail_option("top_p", double{options.top_p}, "a number above 0, at most 1");
  }
}

int32_t Sampler::pick(std::span<const float> logits) {
  FP8KV_ASSERT(!logits.empty());
  size_t largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) fail("the logit of token ", i, " is NaN");
    if (logits[i] > logits[largest]) largest = i;
  }
  if (options_.temperature == 0) return static_cast<int32_t>(largest);

  const double most = double{logits[largest]};
  const double temperature = double{options_.temperature};
  std::vector<Choice> choices(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    // The largest weighs 1 even where it is infinite and the difference would be NaN.
    const double logit = double{logits[i]};
    const double weight = logit == most ? 1.0 : std::exp((logit - most) / temperature);
    choices[i] = {static_cast<int32_t>(i), weight};
  }
  const auto top_k = static_cast<size_t>(options_.top_k);
  if (top_k > 0 && top_k < choices.size()) {
    std::nth_element(choices.begin(), choices.begin() + options_.top_k, choices.end(),
                     comes_before);
    choices.resize(top_k);
    std::sort(choices.begin(), choices.end(), comes_before);
  }
  double total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  if (options_.top_p < 1) {
    // A heap gives the likeliest one by one: few are needed, so sorting all would be a waste.
    const auto later = [](const Choice& a, const Choice& b) { return comes_before(b, a); };
    std::make_heap(choices.begin(), choices.end(), later);
    std::vector<Choice> kept;
    double sum = 0;
    for (auto end = choices.end(); end != choices.begin() && sum < double{options_.top_p} * total;
         --end) {
      std::pop_heap(choices.begin(), end, later);
      kept.push_back(*(end - 1));
      sum += kept.back().weight;
    }
    choices.swap(kept);
    total = sum;
  }
  return draw(choices, total, rng_.uniform());
}

}  // namespace fp8kv
