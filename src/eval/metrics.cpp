#include "eval/metrics.h"

#include "base/text.h"

namespace fp8kv {
namespace {

using Values = std::vector<MetricValue>;

template <double TokenFigures::*Member>
Values of_tokens(const CandidateReport& candidate) {
  return {{"", candidate.total.*Member}};
}

template <typename Value>
Values of_layers(const CandidateReport& candidate, const Value& value) {
  Values values;
  for (size_t i = 0; i < candidate.layers.size(); ++i) {
    if (!candidate.layers[i].has_cache()) continue;
    values.push_back({cat("layer ", i, " K"), value(candidate.layers[i].k)});
    values.push_back({cat("layer ", i, " V"), value(candidate.layers[i].v)});
  }
  return values;
}

template <uint64_t CacheErrors::*Member>
Values share_of(const CandidateReport& candidate) {
  return of_layers(candidate, [](const CacheErrors& errors) {
    return errors.values == 0
               ? 0.0
               : static_cast<double>(errors.*Member) / static_cast<double>(errors.values);
  });
}

// The part of ppl_delta that exceeds two standard errors.
Values sure_rise(const CandidateReport& candidate) {
  return {{"", candidate.total.ppl_delta - 2 * candidate.total.ppl_delta_error}};
}

Values tokens(const CandidateReport& candidate) {
  return {{"", static_cast<double>(candidate.total.tokens)}};
}

Values value_error(const CandidateReport& candidate) {
  return of_layers(candidate, [](const CacheErrors& errors) { return errors.relative_error; });
}

Values attention_error(const CandidateReport& candidate) {
  Values values;
  for (size_t i = 0; i < candidate.layers.size(); ++i) {
    if (!candidate.layers[i].has_cache()) continue;
    values.push_back({cat("layer ", i), candidate.layers[i].attention_error});
  }
  return values;
}

Values greedy(const CandidateReport& candidate) {
  Values values;
  for (size_t i = 0; i < candidate.greedy.agreed.size(); ++i) {
    const auto agreed = static_cast<double>(candidate.greedy.agreed[i]);
    const auto length = static_cast<double>(candidate.greedy.length[i]);
    values.push_back({cat("prompt ", i), agreed / length});
  }
  return values;
}

}  // namespace

const std::vector<Metric>& metrics() {
  using enum Better;
  static const std::vector<Metric> table = {
      {"ppl", "number", lower, "perplexity", of_tokens<&TokenFigures::perplexity>},
      {"ppl_delta", "share", lower, "perplexity / that of the baseline - 1",
       of_tokens<&TokenFigures::ppl_delta>},
      {"ppl_rise", "share", lower,
       "ppl_delta less two standard errors: the part of it that is sure", sure_rise},
      {"kld", "nats", lower, "mean KL divergence from the baseline", of_tokens<&TokenFigures::kld>},
      {"kld_p999", "nats", lower, "its 99.9th percentile", of_tokens<&TokenFigures::kld_p999>},
      {"kld_max", "nats", lower, "its largest", of_tokens<&TokenFigures::kld_max>},
      {"top1", "share", higher, "share of tokens with the baseline's likeliest",
       of_tokens<&TokenFigures::top1>},
      {"greedy", "share", higher, "share of a prompt's greedy text before it parts", greedy},
      {"kv_error", "share", lower, "relative error of a layer's K or V", value_error},
      {"attention_error", "share", lower, "relative error of a layer's attention output",
       attention_error},
      {"saturated", "share", lower, "share of a layer's K or V beyond the largest",
       share_of<&CacheErrors::saturated>},
      {"subnormal", "share", lower, "share in subnormals", share_of<&CacheErrors::subnormal>},
      {"zero", "share", lower, "share that becomes zero", share_of<&CacheErrors::zero>},
      {"nonfinite", "share", lower, "share that is NaN or infinite without clamping",
       share_of<&CacheErrors::nonfinite_unclamped>},
      {"tokens", "tokens", higher, "tokens that were predicted", tokens},
  };
  return table;
}

std::string better_name(Better better) {
  return better == Better::lower ? "lower" : "higher";
}

}  // namespace fp8kv
