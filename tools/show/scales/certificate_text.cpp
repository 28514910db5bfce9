#include "show/scales/certificate_text.h"

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/shell.h"
#include "base/text.h"
#include "policy/make_scales.h"
#include "report/certificate.h"
#include "report/certificate_words.h"
#include "report/evidence.h"
#include "report/positions_words.h"
#include "show/output.h"
#include "show/scales/summary_text.h"

namespace fp8kv {
namespace {

std::string octaves(const std::optional<double>& margin, int decimals) {
  if (!margin) return "-";
  const std::string digits = fixed(std::fabs(*margin), decimals);
  // Rounding the scale may push a margin of 0 slightly below zero.
  const bool negative = *margin < 0 && digits.find_first_not_of("0.") != digits.npos;
  return (negative ? "-" : "+") + digits;
}

std::string percent(const std::optional<ShareRange>& share) {
  if (!share) return "-";
  const double least = 100 * share->least, most = 100 * share->most;
  // Prints one bound if both look the same.
  const std::string low = fixed(least, 1), high = fixed(most, 1);
  return (low == high ? low : low + "-" + high) + " %";
}

std::string reasons(const LayerCertificate& layer) {
  std::vector<std::string> found;
  for (const TensorCertificate* tensor : {&layer.k, &layer.v}) {
    const bool said = !found.empty() && found.back() == tensor->reason;
    if (tensor->verdict != Verdict::unit_safe && !said) found.push_back(tensor->reason);
  }
  return found.empty() ? "" : ": " + join(found, ", ");
}

std::string table_of(const Certificate& certificate) {
  Table table({"layer", "", "amax", "saturation", "underflow", "flushed", "at 1.0: saturation",
               "underflow", "flushed", "verdict"},
              {false, true, false, false, false, false, false, false, false, true}, 2);
  for (size_t i = 0; i < certificate.layers.size(); ++i) {
    const LayerCertificate& layer = certificate.layers[i];
    if (layer.verdict == Verdict::no_cache) {
      table.add({cat(i), "", "-", "-", "-", "-", "-", "-", "-", verdict_name(layer.verdict)});
      continue;
    }
    for (const TensorCertificate* tensor : {&layer.k, &layer.v}) {
      const bool first = tensor == &layer.k;
      const Margins &held = tensor->in_force, &unit = tensor->unit;
      table.add({first ? cat(i) : "", first ? "K" : "V",
                 tensor->amax ? significant(double{*tensor->amax}, 5) : "-",
                 octaves(held.saturation, 2), octaves(held.underflow, 1), percent(held.flushed),
                 octaves(unit.saturation, 2), octaves(unit.underflow, 1), percent(unit.flushed),
                 first ? verdict_name(layer.verdict) + reasons(layer) : ""});
    }
  }
  return table.text();
}

// Says whether the scales in force hold the values that were seen.
std::string holds_words(const KvScales& scales, const Certificate& certificate) {
  const std::vector<size_t> lost = certificate.layers_that_do_not_hold();
  if (lost.empty()) return "hold every value that was seen";
  const std::string& policy = scales.provenance.policy;
  return cat("lose values that were seen in ", layer_list(lost),
             policy.empty() ? ": calibrate again"
                            : cat(": 'fp8kv eval --policy ", shell_word("amax," + policy),
                                  "' says what it costs"));
}

std::string tokens_in_windows(const Provenance& from) {
  return cat(count_of(from.tokens, "token"), " in ", count_of(from.windows, "window"));
}

void share_json(JsonWriter& json, const char* name, const std::optional<ShareRange>& share) {
  json.key(name);
  if (!share) {
    json.null();
    return;
  }
  json.begin_object().member("least", share->least).member("most", share->most).end_object();
}

void margins_json(JsonWriter& json, const char* name, const Margins& margins) {
  json.key(name).begin_object().key("saturation_margin");
  margins.saturation ? json.value(*margins.saturation) : json.null();
  json.key("underflow_margin");
  margins.underflow ? json.value(*margins.underflow) : json.null();
  share_json(json, "subnormal", margins.subnormal);
  share_json(json, "flushed", margins.flushed);
  json.end_object();
}

void tensor_json(JsonWriter& json, const char* name, const TensorCertificate& tensor) {
  json.key(name).begin_object().member("verdict", verdict_name(tensor.verdict));
  if (tensor.verdict != Verdict::unit_safe) json.member("reason", tensor.reason);
  json.key("amax");
  tensor.amax ? json.value(*tensor.amax) : json.null();
  json.member("holds", tensor.holds);
  margins_json(json, "in_force", tensor.in_force);
  margins_json(json, "at_1", tensor.unit);
  json.end_object();
}

void layers_json(JsonWriter& json, const char* name, const std::vector<size_t>& layers) {
  const std::vector<int64_t> numbers(layers.begin(), layers.end());
  json.member(name, std::span<const int64_t>(numbers));
}

void format_json(JsonWriter& json, const Certificate& certificate) {
  json.begin_object().member("format", format_name(certificate.format));
  json.member("verdict", verdict_sentence(certificate));
  if (const std::string q = q_sentence(certificate); !q.empty()) json.member("q_verdict", q);
  layers_json(json, "needs_scale", certificate.layers_with(Verdict::needs_scale));
  layers_json(json, "keep_16bit", certificate.layers_with(Verdict::keep_16bit));
  layers_json(json, "unknown", certificate.layers_with(Verdict::unknown));
  layers_json(json, "does_not_hold", certificate.layers_that_do_not_hold());
  json.member("vllm_flag", skip_flag(certificate)).key("layers").begin_array();
  for (size_t i = 0; i < certificate.layers.size(); ++i) {
    const LayerCertificate& layer = certificate.layers[i];
    json.begin_object().member("layer", uint64_t{i});
    json.member("verdict", verdict_name(layer.verdict));
    if (layer.verdict != Verdict::no_cache) {
      tensor_json(json, "k", layer.k);
      tensor_json(json, "v", layer.v);
      if (layer.q) tensor_json(json, "q", *layer.q);
    }
    json.end_object();
  }
  json.end_array().end_object();
}

// The growth as JSON. JSON has no infinity, so growth from 0 is null, with the layer beside it.
void enough_json(JsonWriter& json, const Provenance& from) {
  const TextEvidence evidence = text_evidence(from);
  json.member("enough_text", evidence.enough).member("more_tokens", evidence.more_tokens);
  json.member("half_tokens", from.parts.back().tokens).key("amax_growth");
  if (!evidence.growth) {
    json.null();
    return;
  }
  json.begin_object().member("layer", uint64_t{evidence.growth->layer});
  json.member("tensor", evidence.growth->key ? "k" : "v");
  const bool bounded = std::isfinite(evidence.growth->share);
  json.key("per_doubling");
  bounded ? json.value(evidence.growth->share) : json.null();
  json.key("octaves");
  bounded ? json.value(evidence.growth->octaves()) : json.null();
  json.key("octaves_before").begin_array();
  for (const AmaxGrowth& each : evidence.earlier) json.value(each.octaves());
  json.end_array().end_object();
}

void positions_json(JsonWriter& json, const PositionsNote& note) {
  if (note.rope_type.empty()) return;
  const std::vector<int64_t> longest(note.longest_windows.begin(), note.longest_windows.end());
  json.key("positions").begin_object().member("rope_type", note.rope_type);
  json.member("original", note.original).member("limit", note.limit);
  json.member("longest_windows", std::span<const int64_t>(longest));
  json.member("not_measured", unmeasured_positions(note)).end_object();
}

}  // namespace

bool has_evidence(const KvScales& scales) {
  return !scales.provenance.amax.empty();
}

std::string certificate_text(const KvScales& scales) {
  const Certificate certificate = certify(scales);
  std::string text = table_of(certificate);
  text += sentence(
      "Octaves between amax and the largest code, and between the median and full precision;\n"
      "flushed: share of values that become zero. First with the scale in force, then with 1.0.");
  if (scales.latent) {
    text += "\n" + sentence(
                       "K: what is rotated of the vector that is cached; V: the latent, its "
                       "rest. One scale.");
  }
  return text + "\n\n" + certificate_notes(scales, certificate);
}

std::string certificate_notes(const KvScales& scales, const Certificate& certificate) {
  const std::string verdict = verdict_sentence(certificate);
  std::string text = noted("verdict", verdict) + noted("scales", holds_words(scales, certificate));
  if (formats_served(scales).size() > 1) {
    const std::string on_fnuz = verdict_sentence(certify(scales, KvFormat::e4m3fnuz));
    text += noted("on FNUZ", (on_fnuz == verdict ? "the same" : on_fnuz) + " (scales doubled)");
  }
  if (const std::string q = q_sentence(certificate); !q.empty() && certificate.text.enough) {
    text += noted("FP8 Q", q + " ('inject --q-scales' writes Q's scales)");
  }
  if (const std::string policy = policy_name(scales); !policy.empty()) {
    text += noted("policy", plain(policy));
  }
  text += noted("evidence", evidence_words(scales.provenance));
  const std::string weights =
      decoded_words(scales.provenance.weights_from, scales.provenance.compute_dtype);
  if (!weights.empty()) text += noted("weights", plain(weights));
  const std::vector<std::string> positions = positions_lines(scales.provenance.positions);
  for (size_t i = 0; i < positions.size(); ++i) {
    text += noted(i == 0 ? "positions" : "", positions[i]);
  }
  const std::string flag = skip_flag(certificate);
  if (!flag.empty()) text += "for vLLM  " + flag + "\n";
  return text;
}

std::string written_note(const std::filesystem::path& out, const KvScales& scales) {
  return cat("wrote ", quote(out.string()), ": scales of ",
             count_of(scales.cached_layers(), "layer"), and_drafts(scales), " from ",
             tokens_in_windows(scales.provenance));
}

void certificate_json(JsonWriter& json, const KvScales& scales) {
  const Provenance& from = scales.provenance;
  json.key("certificate").begin_object();
  if (const std::string policy = policy_name(scales); !policy.empty()) {
    json.member("policy", policy);
  }
  json.key("evidence").begin_object();
  json.member("documents", from.documents).member("windows", from.windows);
  json.member("tokens", from.tokens).member("observation", observation_name(from.observation));
  json.member("compute_dtype", from.compute_dtype).member("amax", !from.amax.empty());
  if (!from.weights_from.empty()) json.member("quantised_weights", from.weights_from);
  json.member("octaves", !from.octaves.empty());
  enough_json(json, from);
  positions_json(json, from.positions);
  json.end_object().key("formats").begin_array();
  for (const KvFormat format : formats_served(scales)) format_json(json, certify(scales, format));
  json.end_array().end_object();
}

}  // namespace fp8kv
