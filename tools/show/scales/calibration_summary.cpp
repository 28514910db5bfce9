#include "show/scales/calibration_summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "report/certificate.h"
#include "report/scales_summary.h"
#include "show/output.h"
#include "show/scales/certificate_text.h"
#include "show/scales/layer_bars.h"

namespace fp8kv {
namespace {

// The largest magnitudes of K or V: bars by octaves, from the smallest layer to the largest.
std::string amax_bars(const std::string& name, const KvScales& scales,
                      std::vector<float> LayerAmax::*tensor) {
  std::vector<std::optional<double>> octaves(scales.layers.size());
  std::vector<float> all;
  for (size_t i = 0; i < octaves.size(); ++i) {
    const float amax = largest(scales.provenance.amax[i].*tensor);
    if (!scales.layers[i].has_cache() || amax <= 0) continue;
    octaves[i] = std::log2(double{amax});
    all.push_back(amax);
  }
  if (all.empty()) return "";
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  const double low = std::log2(double{*least}), span = std::log2(double{*most}) - low;
  for (std::optional<double>& each : octaves) {
    if (each) each = span > 0 ? (*each - low) / span : 0;
  }
  return layer_bars(name, octaves,
                    cat(significant(double{*least}, 3), " to ", significant(double{*most}, 3)));
}

// How many octaves the margins of a scale of 1 have left. Negative if a scale of 1 is not safe.
double slack(const TensorCertificate& tensor) {
  const double above = tensor.unit.saturation.value_or(INFINITY) - kLeastUnitSaturationMargin;
  const double below = tensor.unit.underflow.value_or(INFINITY) - kLeastUnderflowMargin;
  return std::min(above, below);
}

double slack(const LayerCertificate& layer) {
  return std::min(slack(layer.k), slack(layer.v));
}

// "K up to 217, 1.05 octaves below the largest code". Names the limit that a scale of 1 is closer
// to.
std::string tight_words(const char* name, const TensorCertificate& tensor) {
  const double above = tensor.unit.saturation.value_or(INFINITY) - kLeastUnitSaturationMargin;
  if (above <= slack(tensor)) {
    const double margin = tensor.unit.saturation.value_or(0);
    return cat(name, " up to ", significant(double{tensor.amax.value_or(0)}, 5), ", ",
               fixed(std::fabs(margin), 2), " octaves ", margin < 0 ? "above" : "below",
               " the largest code");
  }
  const double margin = tensor.unit.underflow.value_or(0);
  return cat("half of ", name, " ", fixed(std::fabs(margin), 1), " octaves or more ",
             margin < 0 ? "below" : "above", " full precision");
}

// The three layers with the least room at a scale of 1.
std::string look_at(const Certificate& certificate) {
  std::vector<size_t> layers;
  for (size_t i = 0; i < certificate.layers.size(); ++i) {
    if (std::isfinite(slack(certificate.layers[i]))) layers.push_back(i);
  }
  std::stable_sort(layers.begin(), layers.end(), [&](size_t a, size_t b) {
    return slack(certificate.layers[a]) < slack(certificate.layers[b]);
  });
  if (layers.size() > 3) layers.resize(3);
  std::string text;
  for (const size_t i : layers) {
    const LayerCertificate& layer = certificate.layers[i];
    const bool key = slack(layer.k) <= slack(layer.v);
    text += noted(text.empty() ? "look at" : "",
                  cat("layer ", i, ": ", tight_words(key ? "K" : "V", key ? layer.k : layer.v)));
  }
  return text;
}

// The loss is not known from the range alone: FP8 is floating point, so values that fit still lose
// precision.
std::string loss_words(const ServingNames& names) {
  if (names.drafter) return "not measured: count accepted drafts on the server, with and without";
  return cat("not measured here: fp8kv eval ", names.model, " --data TEXT --scales ", names.scales);
}

std::string memory_words(const BytesOfToken& memory) {
  return cat(grouped(memory.format_bytes), " bytes a token, ", grouped(memory.own_bytes), " in ",
             memory.own_dtype);
}

std::string amax_table(const KvScales& scales) {
  Table table({"layer", "K amax", "K scale", "V amax", "V scale", "Q amax"}, {false});
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    const LayerAmax& amax = scales.provenance.amax[i];
    const LayerScales& of = scales.layers[i];
    table.add({cat(i), significant(largest(amax.k)), significant(largest(of.k)),
               significant(largest(amax.v)), significant(largest(of.v)),
               significant(largest(amax.q))});
  }
  for (const DraftScales& draft : scales.drafts) {
    table.add({draft.layer, significant(largest(draft.amax.k)),
               significant(largest(draft.scales.k)), significant(largest(draft.amax.v)),
               significant(largest(draft.scales.v)), significant(largest(draft.amax.q))});
  }
  return table.text();
}

}  // namespace

std::string calibration_summary(const KvScales& scales, const ServingNames& names,
                                const std::optional<BytesOfToken>& memory) {
  const Certificate certificate = certify(scales);
  const ScalesSummary summary = summary_of(scales, certificate, names);
  std::string text = noted("made", terminal_line(summary.made));
  text += certificate_notes(scales, certificate) + look_at(certificate);
  text += amax_bars("amax of K", scales, &LayerAmax::k);
  text += amax_bars("amax of V", scales, &LayerAmax::v);
  if (memory) text += noted("memory", memory_words(*memory));
  text += noted("loss", terminal_line(loss_words(names)));
  return text + "next      " + terminal_line(summary.next) + "\n";
}

std::string calibration_tables(const KvScales& scales) {
  return amax_table(scales) + "\n" + certificate_text(scales);
}

}  // namespace fp8kv
