#include "report/scales_summary.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "policy/make_scales.h"
#include "report/certificate_words.h"

namespace fp8kv {
namespace {

using Tone = ScalesSummary::Tone;

std::string made_words(const KvScales& scales) {
  const Provenance& from = scales.provenance;
  std::string text = cat("scales of ", count_of(scales.cached_layers(), "layer"));
  if (!scales.drafts.empty()) text += " and " + count_of(scales.drafts.size(), "draft layer");
  text += cat(", one per ", scales.per_head() ? "KV head" : "tensor");
  const std::string policy = policy_name(scales);
  if (!policy.empty() && policy != "amax" && policy != "head") text += ", by " + plain(policy);
  if (from.tokens > 0) {
    text +=
        cat(", from ", count_of(from.tokens, "token"), " in ", count_of(from.windows, "window"));
  }
  if (from.shards.of > 0) {
    text += cat(": ", from.shards.taken.size(), " of ", count_of(from.shards.of, "shard"));
  }
  return text;
}

// "2 of 6 layers need their scales"; "" if there is no such layer.
std::string share_words(const Certificate& certificate, Verdict verdict, const char* one,
                        const char* several) {
  const size_t with = certificate.layers_with(verdict).size();
  if (with == 0) return "";
  const size_t all = certificate.layers.size() - certificate.layers_with(Verdict::no_cache).size();
  return cat(with, " of ", count_of(all, "layer"), " ", with == 1 ? one : several);
}

std::string at_1_words(const Certificate& certificate) {
  if (!certificate.text.enough) {
    return "cannot be judged: too little text: " + too_little_text(certificate.text);
  }
  std::vector<std::string> against;
  for (const std::string& each :
       {share_words(certificate, Verdict::needs_scale, "needs its scale", "need their scales"),
        share_words(certificate, Verdict::keep_16bit, "should stay in 16 bit",
                    "should stay in 16 bit")}) {
    if (!each.empty()) against.push_back(each);
  }
  if (!against.empty()) return "would not have done: " + join(against);
  const std::string unknown =
      share_words(certificate, Verdict::unknown, "is not decided", "are not decided");
  if (unknown.empty()) return "would have done in every layer";
  const size_t safe = certificate.layers_with(Verdict::unit_safe).size();
  return safe == 0 ? "cannot be judged: " + unknown
                   : cat("would have done in ", count_of(safe, "layer"), "; ", unknown);
}

// The layers whose values are lost although a scale could hold them.
std::vector<size_t> lost_layers(const Certificate& certificate) {
  std::vector<size_t> lost = certificate.layers_that_do_not_hold();
  std::erase_if(
      lost, [&](size_t layer) { return certificate.layers[layer].verdict == Verdict::keep_16bit; });
  return lost;
}

std::string more_text(const TextEvidence& evidence) {
  return cat("calibrate on more text",
             evidence.more_tokens > 0
                 ? cat(", ", count_of(evidence.more_tokens, "token"), " more at least")
                 : "");
}

// Words behind the command of inject, if vLLM is not known to use the scales.
std::string fate_words(const CopyFate& vllm) {
  switch (vllm.use) {
    case CopyFate::Use::used:
      return "";
    case CopyFate::Use::useless:
    case CopyFate::Use::no_model:
      return ", for other runtimes than vLLM. vLLM: " + vllm.why;
    case CopyFate::Use::unknown:
      return ". Whether vLLM uses them is not known: " + vllm.why;
  }
  assertion_failed("a CopyFate", __FILE__, __LINE__);
}

}  // namespace

std::string inject_command(const KvScales& scales, const ServingNames& names) {
  // A folder for all runtimes has one scale per layer; only vLLM reads scales per head.
  return cat("fp8kv inject ", names.model, " --scales ", names.scales, " -o ", names.copy,
             scales.per_head() ? " --for vllm" : "");
}

std::string vllm_command(const Certificate& certificate, const ServingNames& names) {
  const std::string flag = skip_flag(certificate);
  return cat("vllm serve ", names.vllm.use == CopyFate::Use::useless ? names.model : names.copy,
             " --kv-cache-dtype ", is_nvfp4(certificate.format) ? "nvfp4" : "fp8",
             flag.empty() ? "" : " " + flag);
}

ScalesSummary summary_of(const KvScales& scales, const Certificate& certificate,
                         const ServingNames& names) {
  ScalesSummary summary{made_words(scales), at_1_words(certificate), "", false, Tone::unsure};
  const ShardNote& shards = scales.provenance.shards;
  const std::vector<size_t> lost = lost_layers(certificate);
  if (shards.of > shards.taken.size()) {
    summary.next = cat("calibrate the other ", count_of(shards.of - shards.taken.size(), "shard"),
                       ", then fp8kv merge");
  } else if (!certificate.text.enough) {
    summary.next = more_text(certificate.text);
  } else if (!lost.empty()) {
    summary.tone = Tone::bad;
    const std::string measure =
        names.drafter ? std::string("fp8kv calibrate with --policy amax")
                      : cat("fp8kv eval ", names.model, " --data TEXT --scales ", names.scales);
    summary.next = cat(measure, ", as values of ", layer_list(lost), " are lost");
  } else {
    summary.ready = true;
    summary.next = inject_command(scales, names);
    summary.next += fate_words(names.vllm);
    const bool all_known = certificate.layers_with(Verdict::unknown).empty();
    const bool all_fit = certificate.layers_with(Verdict::keep_16bit).empty();
    if (all_known && all_fit) summary.tone = Tone::good;
  }
  return summary;
}

}  // namespace fp8kv
