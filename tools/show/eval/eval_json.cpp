#include "show/eval/eval_json.h"

#include <cmath>

#include "core/numbers/dtype.h"
#include "eval/with_evidence.h"
#include "json/json.h"
#include "report/advice.h"
#include "report/verdict.h"
#include "show/scales/certificate_text.h"
#include "show/scales/scales_text.h"

namespace fp8kv {
namespace {

void number(JsonWriter& json, const char* name, double value) {
  json.key(name);
  std::isfinite(value) ? json.value(value) : json.null();
}

void data_files(JsonWriter& json, const std::vector<DataFile>& files) {
  json.key("data").begin_array();
  for (const DataFile& file : files) {
    json.begin_object().member("name", file.name).member("bytes", file.bytes);
    json.member("sha256", file.sha256).end_object();
  }
  json.end_array();
}

void amax_of(JsonWriter& json, const LayerAmax& amax) {
  json.member("k_amax", std::span<const float>(amax.k));
  json.member("v_amax", std::span<const float>(amax.v));
  json.member("q_amax", std::span<const float>(amax.q));
}

void figures(JsonWriter& json, const TokenFigures& of) {
  json.begin_object().member("first_depth", of.first_depth).member("end_depth", of.end_depth);
  json.member("tokens", of.tokens);
  number(json, "nll", of.nll);
  number(json, "nll_error", of.nll_error);
  number(json, "perplexity", of.perplexity);
  number(json, "perplexity_error", of.perplexity_error);
  number(json, "ppl_delta", of.ppl_delta);
  number(json, "ppl_delta_error", of.ppl_delta_error);
  number(json, "kld", of.kld);
  number(json, "kld_error", of.kld_error);
  number(json, "kld_p999", of.kld_p999);
  number(json, "kld_max", of.kld_max);
  number(json, "top1", of.top1);
  json.member("first_tokens", of.first_tokens);
  number(json, "first_kld", of.first_kld);
  number(json, "first_kld_error", of.first_kld_error);
  number(json, "later_kld", of.later_kld);
  number(json, "later_kld_error", of.later_kld_error);
  number(json, "heavy_share", of.heavy_share);
  json.end_object();
}

void cache_errors(JsonWriter& json, const char* name, const CacheErrors& of) {
  json.key(name).begin_object();
  number(json, "relative_error", of.relative_error);
  json.key("head_errors").begin_array();
  for (const double error : of.head_errors) {
    std::isfinite(error) ? json.value(error) : json.null();
  }
  json.end_array().member("values", of.values).member("saturated", of.saturated);
  json.member("subnormal", of.subnormal).member("zero", of.zero);
  json.member("nonfinite_unclamped", of.nonfinite_unclamped).end_object();
}

void layers(JsonWriter& json, const CandidateReport& of) {
  json.key("layers").begin_array();
  for (size_t i = 0; i < of.layers.size(); ++i) {
    json.begin_object().member("layer", uint64_t{i});
    if (of.scales) {
      json.member("k_scale", std::span<const float>(of.scales->layers[i].k));
      json.member("v_scale", std::span<const float>(of.scales->layers[i].v));
    }
    if (of.layers[i].has_cache()) {
      number(json, "attention_error", of.layers[i].attention_error);
      cache_errors(json, "k", of.layers[i].k);
      cache_errors(json, "v", of.layers[i].v);
    }
    json.end_object();
  }
  json.end_array();
}

// The paired difference between this cache and the advised one.
void difference_json(JsonWriter& json, const EvalReport& report, const CandidateReport& of) {
  const CandidateReport* advised = advise(report).cache;
  if (advised == nullptr || advised == &of) return;
  const MeanAndError difference = kld_difference(of, *advised);
  number(json, "kld_difference", difference.mean);
  number(json, "kld_difference_error", difference.error);
}

void advice_json(JsonWriter& json, const EvalReport& report) {
  const CacheAdvice advice = advise(report);
  json.key("advised");
  advice.cache == nullptr ? json.null() : json.value(advice.cache->name);
  json.key("tied").begin_array();
  for (const CandidateReport* each : advice.tied) json.value(each->name);
  json.end_array();
}

void candidate(JsonWriter& json, const EvalReport& report, const CandidateReport& of) {
  json.begin_object().member("name", of.name).member("kv_cache_dtype", of.dtype_name);
  if (!of.policy.empty()) json.member("policy", of.policy);
  if (of.arithmetic.fp8_attention) json.member("attention", "fp8");
  if (of.arithmetic.toward_zero) json.member("fp8_rounding", "toward-zero");
  json.member("bytes_per_token", of.bytes_per_token).key("total");
  figures(json, of.total);
  json.key("depths").begin_array();
  for (const TokenFigures& each : of.depths) figures(json, each);
  json.end_array().key("greedy").begin_array();
  for (size_t i = 0; i < of.greedy.agreed.size(); ++i) {
    json.begin_object().member("agreed", of.greedy.agreed[i]);
    json.member("length", of.greedy.length[i]).end_object();
  }
  json.end_array();
  layers(json, of);
  if (&of != &report.baseline) {
    json.member("verdict", loss_name(loss_of(of)));
    difference_json(json, report, of);
  }
  if (is_e4m3(of.dtype)) certificate_json(json, with_evidence(report, of));
  json.end_object();
}

void calibration(JsonWriter& json, const CalibrationReport& of) {
  json.key("calibration").begin_object().member("same_data", of.same_data);
  data_files(json, of.data);
  json.member("windows", of.windows).member("tokens", of.tokens);
  json.key("convergence").begin_array();
  for (const AmaxAfter& part : of.convergence) {
    json.begin_object().member("tokens", part.tokens).key("layers").begin_array();
    for (const LayerAmax& amax : part.layers) {
      json.begin_object();
      amax_of(json, amax);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::string eval_json(const EvalReport& report, const std::vector<GateResult>& gates) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.eval/1").member("tool_version", report.tool_version);
  json.member("model", report.model).member("fingerprint", report.fingerprint);
  if (!report.against.empty()) json.member("against", report.against);
  if (!report.accepted_foreign.empty()) {
    json.member("accepted_foreign", report.accepted_foreign);
  }
  unknown_keys_json(json, report.config.unknown_keys);
  quantised_json(json, report.config.stored_as);
  json.member("device", report.device).member("dtype", torch_name(report.config.dtype));
  data_files(json, report.data);
  json.member("documents", report.documents).member("windows", report.windows);
  json.member("tokens", report.tokens).member("longest_window", report.longest_window);
  json.member("attention_tokens", report.attention_tokens);
  if (report.calibration) calibration(json, *report.calibration);
  json.key("amax").begin_array();
  for (const LayerMagnitudes& layer : report.magnitudes) {
    json.begin_object();
    amax_of(json, layer_amax(layer));
    json.end_object();
  }
  json.end_array().key("first_token_amax").begin_array();
  for (const FirstTokenAmax& layer : report.first_tokens) {
    json.begin_object().member("k_first", layer.k_first).member("k_later", layer.k_later);
    json.member("v_first", layer.v_first).member("v_later", layer.v_later).end_object();
  }
  json.end_array().key("baseline");
  candidate(json, report, report.baseline);
  json.key("candidates").begin_array();
  for (const CandidateReport& each : report.candidates) candidate(json, report, each);
  json.end_array();
  advice_json(json, report);
  json.key("gates").begin_array();
  for (const GateResult& each : gates) {
    json.begin_object().member("candidate", each.candidate).member("gate", each.gate);
    json.member("failed", each.failed).member("finding", each.finding).end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace fp8kv
