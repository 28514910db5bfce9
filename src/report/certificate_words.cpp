#include "report/certificate_words.h"

#include "base/text.h"

namespace fp8kv {

std::string layer_list(const std::vector<size_t>& layers) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < layers.size();) {
    size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    // Two in a row are no shorter as a range.
    if (end - i > 2) {
      runs.push_back(cat(layers[i], "-", layers[end - 1]));
    } else {
      for (size_t j = i; j < end; ++j) runs.push_back(cat(layers[j]));
    }
    i = end;
  }
  return (layers.size() == 1 ? "layer " : "layers ") + join(runs);
}

std::string verdict_sentence(const Certificate& certificate) {
  const size_t all = certificate.layers.size();
  std::string sentence;
  const auto say = [&](const std::string& part) {
    sentence += (sentence.empty() ? "" : "; ") + part;
  };
  const auto add = [&](Verdict verdict, const char* one, const char* several) {
    const std::vector<size_t> layers = certificate.layers_with(verdict);
    if (layers.empty()) return;
    const bool every = layers.size() == all && all > 1;
    say(cat(every ? "every layer" : layer_list(layers), " ",
            every || layers.size() == 1 ? one : several));
  };
  add(Verdict::keep_16bit, "should stay in 16 bit", "should stay in 16 bit");
  add(Verdict::needs_scale, "needs its scale", "need their scales");
  add(Verdict::unknown, "is not known for want of evidence", "are not known for want of evidence");
  const size_t safe = certificate.layers_with(Verdict::unit_safe).size();
  if (safe == all) {
    say("1.0 is safe in every layer");
  } else if (safe > 0) {
    say(cat("1.0 is safe in the other ", safe == 1 ? "layer" : cat(safe)));
  }
  return sentence;
}

std::string skip_flag(const Certificate& certificate) {
  std::string flag;
  for (const size_t layer : certificate.layers_with(Verdict::keep_16bit)) flag += cat(" ", layer);
  return flag.empty() ? "" : "--kv-cache-dtype-skip-layers" + flag;
}

}  // namespace fp8kv
