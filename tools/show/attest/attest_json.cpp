#include "show/attest/attest_json.h"

#include "json/json.h"

namespace fp8kv {
namespace {

const char* verdict_key(AttestVerdict verdict) {
  if (verdict == AttestVerdict::fits) return "fits";
  return verdict == AttestVerdict::none ? "none" : "undecided";
}

const char* rounding_key(const CacheArithmetic& arithmetic) {
  return arithmetic.toward_zero ? "toward_zero" : "nearest";
}

void add_hypothesis(JsonWriter& json, const AttestReport& report, size_t h) {
  const Hypothesis& each = report.hypotheses[h];
  const Evidence& evidence = report.evidence;
  json.begin_object().member("name", each.name).member("outcome", outcome_key(each.outcome));
  if (each.layer >= 0) json.member("layer", each.layer);
  if (h != 0) json.member("rounding", rounding_key(each.cache.arithmetic));
  if (each.cache.arithmetic.fp8_attention) json.member("attention", "fp8");
  json.member("off_by", evidence.residual(h)).member("explained", evidence.explained(h));
  json.member("log_odds_against", evidence.against(h));
  json.member("excluded", evidence.is_excluded(h));
  if (evidence.is_excluded(h)) json.member("excluded_after", uint64_t{evidence.excluded_after(h)});
  json.end_object();
}

// Every number behind the answer, so that others can recompute it.
void add_windows(JsonWriter& json, const Evidence& evidence) {
  const auto add = [&](const std::vector<double>& values) {
    json.begin_array();
    for (const double each : values) json.value(each);
    json.end_array();
  };
  json.key("windows").begin_array();
  for (const EvidenceWindow& window : evidence.windows()) {
    json.begin_object().key("server");
    add(window.server);
    json.key("predicted").begin_array();
    for (const auto& predicted : window.predicted) add(predicted);
    json.end_array().end_object();
  }
  json.end_array();
}

}  // namespace

std::string attest_json(const AttestReport& report, const AttestedServer& server) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.attest/1");
  json.member("verdict", verdict_key(report.verdict));
  json.member("answer", attest_answer(report, server));
  json.member("best", attest_cache(report));
  json.key("left").begin_array();
  for (const size_t h : report.left) json.value(report.hypotheses[h].name);
  json.end_array();
  json.member("server", server.address).member("runtime", server.runtime);
  if (!server.version.empty()) json.member("version", utf8_name(server.version));
  json.member("model", utf8_name(server.model)).member("decoded", server.decoded);
  json.member("level", server.level).member("tokens", report.evidence.tokens());
  json.member("log_odds_needed", report.evidence.threshold());
  json.member("layers_seen", std::span<const int64_t>(report.seen_layers));
  json.member("layers_unseen", std::span<const int64_t>(report.unseen_layers));
  json.key("hypotheses").begin_array();
  for (size_t h = 0; h < report.hypotheses.size(); ++h) add_hypothesis(json, report, h);
  json.end_array();
  add_windows(json, report.evidence);
  return json.end_object().text();
}

}  // namespace fp8kv
