#include "eval/gates.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.h"

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

Values value_error(const CandidateReport& candidate) {
  return of_layers(candidate, [](const CacheErrors& errors) { return errors.relative_error; });
}

Values attention_error(const CandidateReport& candidate) {
  Values values;
  for (size_t i = 0; i < candidate.layers.size(); ++i) {
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

struct Operator {
  const char* text;  // longer ones first
  Comparison comparison;
};
constexpr Operator kOperators[] = {{"<=", Comparison::less_equal},
                                   {">=", Comparison::greater_equal},
                                   {"<", Comparison::less},
                                   {">", Comparison::greater}};

bool holds(double value, Comparison comparison, double bound) {
  if (std::isnan(value)) return true;
  switch (comparison) {
    case Comparison::less:
      return value < bound;
    case Comparison::less_equal:
      return value <= bound;
    case Comparison::greater:
      return value > bound;
    case Comparison::greater_equal:
      break;
  }
  return value >= bound;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(cat(quote(text), ": ", why), "write METRIC OP NUMBER[%], as in \"ppl_delta > 0.5%\"",
              ErrorKind::usage);
}

const GateMetric& metric_named(const std::string& name, const std::string& text) {
  std::vector<std::string> names;
  for (const GateMetric& metric : gate_metrics()) {
    if (metric.name == name) return metric;
    names.push_back(metric.name);
  }
  refuse(text, cat(quote(name), " is none of ", join(names), did_you_mean(name, names)));
}

double bound_in(std::string_view written, const std::string& text) {
  const bool percent = written.ends_with('%');
  const std::string_view digits = trimmed(written.substr(0, written.size() - (percent ? 1 : 0)));
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() ||
      !std::isfinite(value)) {
    refuse(text, cat(quote(written), " is no number"));
  }
  return percent ? value / 100 : value;
}

// Six digits, or all of them where six would read as the very bound.
std::string text_beside(double value, double bound) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return value != bound && std::strtod(buffer, nullptr) == bound ? cat(value) : buffer;
}

GateResult check(const CandidateReport& candidate, const Gate& gate) {
  GateResult result{candidate.name, gate.text, false, cat("no ", gate.metric->name, " measured")};
  const bool largest_is_worst =
      gate.comparison == Comparison::greater || gate.comparison == Comparison::greater_equal;
  std::optional<MetricValue> worst;
  for (const MetricValue& each : gate.metric->values(candidate)) {
    const bool worse = !worst || std::isnan(each.value) ||
                       (largest_is_worst ? each.value > worst->value : each.value < worst->value);
    if (worse && !(worst && std::isnan(worst->value))) worst = each;
  }
  if (!worst) {
    result.failed = true;  // what was not measured cannot pass
    return result;
  }
  result.failed = holds(worst->value, gate.comparison, gate.bound);
  result.finding = cat(gate.metric->name, " is ", text_beside(worst->value, gate.bound),
                       worst->where.empty() ? "" : " in ", worst->where);
  return result;
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // XML has no way to write other control characters.
        escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace

const std::vector<GateMetric>& gate_metrics() {
  static const std::vector<GateMetric> metrics = {
      {"ppl", "perplexity", of_tokens<&TokenFigures::perplexity>},
      {"ppl_delta", "perplexity / that of the baseline - 1", of_tokens<&TokenFigures::ppl_delta>},
      {"kld", "mean KL divergence from the baseline", of_tokens<&TokenFigures::kld>},
      {"kld_p999", "its 99.9th percentile", of_tokens<&TokenFigures::kld_p999>},
      {"kld_max", "its largest", of_tokens<&TokenFigures::kld_max>},
      {"top1", "share of tokens with the baseline's likeliest", of_tokens<&TokenFigures::top1>},
      {"greedy", "share of a prompt's greedy text before it parts", greedy},
      {"kv_error", "relative error of a layer's K or V", value_error},
      {"attention_error", "relative error of a layer's attention output", attention_error},
      {"saturated", "share of a layer's K or V beyond the largest",
       share_of<&CacheErrors::saturated>},
      {"subnormal", "share in subnormals", share_of<&CacheErrors::subnormal>},
      {"zero", "share that becomes zero", share_of<&CacheErrors::zero>},
      {"nonfinite", "share that is NaN or infinite without clamping",
       share_of<&CacheErrors::nonfinite_unclamped>},
  };
  return metrics;
}

Gate parse_gate(const std::string& text) {
  for (const Operator& each : kOperators) {
    const size_t at = text.find(each.text);
    if (at == text.npos) continue;
    const std::string name(trimmed(std::string_view(text).substr(0, at)));
    const std::string_view number =
        trimmed(std::string_view(text).substr(at + std::string_view(each.text).size()));
    const GateMetric& metric = metric_named(name, text);
    return {text, &metric, each.comparison, bound_in(number, text)};
  }
  refuse(text, "has none of <, <=, > and >=");
}

std::vector<GateResult> check_gates(const EvalReport& report, const std::vector<Gate>& gates) {
  std::vector<GateResult> results;
  for (const CandidateReport& candidate : report.candidates) {
    for (const Gate& gate : gates) results.push_back(check(candidate, gate));
  }
  return results;
}

std::string junit_text(const EvalReport& report, const std::vector<GateResult>& results) {
  const auto failures =
      std::count_if(results.begin(), results.end(), [](const auto& each) { return each.failed; });
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += cat("<testsuites tests=\"", results.size(), "\" failures=\"", failures, "\">\n");
  text += cat("  <testsuite name=\"fp8kv eval ", xml_escaped(report.model), "\" tests=\"",
              results.size(), "\" failures=\"", failures, "\">\n");
  for (const GateResult& each : results) {
    text += cat("    <testcase classname=\"", xml_escaped(each.candidate), "\" name=\"",
                xml_escaped(each.gate), "\"");
    if (each.failed) {
      text +=
          cat(">\n      <failure message=\"", xml_escaped(each.finding), "\"/>\n    </testcase>\n");
    } else {
      text += "/>\n";
    }
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace fp8kv
