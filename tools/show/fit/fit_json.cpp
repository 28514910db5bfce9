#include <cmath>
#include <span>

#include "json/json.h"
#include "show/fit/fit_text.h"

namespace fp8kv {
namespace {

void finite_number(JsonWriter& json, const char* name, double value) {
  json.key(name);
  std::isfinite(value) ? json.value(value) : json.null();
}

void point(JsonWriter& json, const FitReport& report, const ConfirmedPoint& of) {
  json.begin_object().member("kv_cache_dtype", report.formats[of.point.format].name);
  json.member("skip_layers", std::span<const int64_t>(of.point.left));
  json.member("bytes", of.point.bytes).member("bytes_per_token", of.point.bytes_per_token);
  finite_number(json, "predicted_kld", of.point.predicted);
  finite_number(json, "kld", of.total.kld);
  finite_number(json, "kld_error", of.total.kld_error);
  finite_number(json, "kld_p999", of.total.kld_p999);
  finite_number(json, "ppl_delta", of.total.ppl_delta);
  finite_number(json, "ppl_delta_error", of.total.ppl_delta_error);
  finite_number(json, "top1", of.total.top1);
  json.member("first_tokens", of.total.first_tokens);
  finite_number(json, "first_kld", of.total.first_kld);
  finite_number(json, "first_kld_error", of.total.first_kld_error);
  finite_number(json, "later_kld", of.total.later_kld);
  finite_number(json, "later_kld_error", of.total.later_kld_error);
  finite_number(json, "heavy_share", of.total.heavy_share);
  json.end_object();
}

void costs(JsonWriter& json, const FitReport& report) {
  json.key("costs").begin_array();
  for (size_t i = 0; i < report.formats.size(); ++i) {
    json.begin_object().member("kv_cache_dtype", report.formats[i].name);
    finite_number(json, "all_kld", report.costs[i].all_kld);
    finite_number(json, "all_error", report.costs[i].all_error);
    json.key("layers").begin_array();
    for (const LayerCost& each : report.costs[i].layers) {
      json.begin_object().member("layer", each.layer);
      finite_number(json, "kld", each.kld);
      finite_number(json, "kld_error", each.error);
      json.member("bytes_saved", each.saved).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

}  // namespace

std::string fit_json(const FitReport& report, const FitSubject& subject) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.fit/1").member("model", subject.model);
  json.member("runtime", subject.runtime).member("unit", subject.unit);
  if (!subject.dropped.empty()) json.member("scales_dropped", subject.dropped);
  json.key("budget").begin_object();
  if (report.budget.max_kld) finite_number(json, "max_kld", *report.budget.max_kld);
  if (report.budget.most_bytes) json.member("bytes", *report.budget.most_bytes);
  json.end_object();
  json.member("choosing_tokens", report.choosing_tokens);
  json.member("cost_tokens", report.cost_tokens);
  json.member("confirming_tokens", report.confirming_tokens);
  json.key("baseline").begin_object();
  json.member("bytes", report.baseline_bytes);
  json.member("bytes_per_token", report.baseline_bytes_per_token);
  finite_number(json, "perplexity", report.baseline.perplexity);
  json.end_object();
  costs(json, report);
  json.key("points").begin_array();
  for (const ConfirmedPoint& each : report.points) point(json, report, each);
  json.end_array().key("chosen");
  if (report.chosen) {
    point(json, report, report.points[*report.chosen]);
  } else {
    json.null();
  }
  json.key("commands").begin_array();
  for (const std::string& each : fit_commands(report, subject)) json.value(each);
  json.end_array().end_object();
  return json.text();
}

}  // namespace fp8kv
