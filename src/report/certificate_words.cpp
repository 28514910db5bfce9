#include "report/certificate_words.h"

#include <map>
#include <set>
#include <vector>

#include "base/text.h"

namespace fp8kv {
namespace {

const std::string& unknown_reason(const LayerCertificate& layer) {
  return layer.k.verdict == Verdict::unknown ? layer.k.reason : layer.v.reason;
}

}  // namespace

std::string verdict_sentence(const Certificate& certificate) {
  if (!certificate.text.enough) return "too little text: " + too_little_text(certificate.text);
  const size_t without = certificate.layers_with(Verdict::no_cache).size();
  const size_t all = certificate.layers.size() - without;
  const std::string every_layer = without == 0 ? "every layer" : "every layer with a cache";
  std::string sentence;
  const auto say = [&](const std::string& part) {
    sentence += (sentence.empty() ? "" : "; ") + part;
  };
  const auto add = [&](Verdict verdict, const char* one, const char* several) {
    const std::vector<size_t> layers = certificate.layers_with(verdict);
    if (layers.empty()) return;
    const bool every = layers.size() == all && all > 1;
    say(cat(every ? every_layer : layer_list(layers), " ",
            every || layers.size() == 1 ? one : several));
  };
  add(Verdict::keep_16bit, "should stay in 16 bit", "should stay in 16 bit");
  add(Verdict::needs_scale, "needs its scale", "need their scales");
  add(Verdict::unknown, "is not decided", "are not decided");
  const std::vector<size_t> unknown = certificate.layers_with(Verdict::unknown);
  if (!unknown.empty()) {
    sentence +=
        cat(" (layer ", unknown[0], ": ", unknown_reason(certificate.layers[unknown[0]]), ")");
  }
  const size_t safe = certificate.layers_with(Verdict::unit_safe).size();
  if (safe == all) {
    say("1.0 is safe in " + every_layer);
  } else if (safe > 0) {
    say(cat("1.0 is safe in the other ", safe == 1 ? "layer" : cat(safe)));
  }
  return sentence;
}

std::string q_sentence(const Certificate& certificate) {
  std::map<std::string, std::vector<size_t>> by_reason;
  size_t safe = 0;
  for (size_t i = 0; i < certificate.layers.size(); ++i) {
    const std::optional<TensorCertificate>& q = certificate.layers[i].q;
    if (!q) continue;
    if (q->verdict == Verdict::unit_safe) {
      ++safe;
    } else {
      by_reason[q->reason].push_back(i);
    }
  }
  if (by_reason.empty()) return safe == 0 ? "" : "1.0 is safe for Q in every layer";
  std::vector<std::string> parts;
  for (const auto& [reason, layers] : by_reason) {
    parts.push_back(cat(reason, " in ", layer_list(layers)));
  }
  if (safe > 0) parts.push_back(cat("1.0 is safe in the other ", safe == 1 ? "layer" : cat(safe)));
  std::string sentence;
  for (const std::string& part : parts) sentence += (sentence.empty() ? "" : "; ") + part;
  return sentence;
}

std::string skip_flag(const Certificate& certificate) {
  std::set<size_t> layers(certificate.skipped.begin(), certificate.skipped.end());
  if (certificate.text.enough) {
    const std::vector<size_t> lost = certificate.layers_with(Verdict::keep_16bit);
    layers.insert(lost.begin(), lost.end());
  }
  std::string flag;
  for (const size_t layer : layers) flag += cat(" ", layer);
  return flag.empty() ? "" : "--kv-cache-dtype-skip-layers" + flag;
}

}  // namespace fp8kv
