#include "report/serving_html.h"

#include <algorithm>

#include "base/text.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "report/certificate_words.h"
#include "report/page_parts.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

constexpr const char* kCopy = "MODEL-FOLDER-WITH-SCALES";

// vLLM's, of the cache that was measured. Layers that the certificate keeps in 16 bit are left out
// of it.
std::string serve_command(const EvalReport& report, const CandidateReport& best,
                          const char* folder) {
  const char* dtype = is_e4m3(best.dtype) ? "fp8" : "fp8_e5m2";
  std::string command = cat("vllm serve ", folder, " --kv-cache-dtype ", dtype);
  if (certified_candidate(report) != &best) return command;
  const std::string flag = skip_flag(*certificate_of(report));
  return flag.empty() ? command : cat(command, " ", flag);
}

HtmlCell scale_cell(const std::vector<float>& heads) {
  if (heads.empty()) return {"–", "NaN"};
  const auto [least, most] = std::minmax_element(heads.begin(), heads.end());
  const std::string low = short_number(double{*least}, 4), high = short_number(double{*most}, 4);
  return {low == high ? high : cat(low, " – ", high), cat(*most)};
}

}  // namespace

std::string serve_words(const EvalReport& report) {
  const CandidateReport* best = nearest_fp8(report);
  if (best == nullptr) return "";
  if (loss_of(*best) == Loss::broken) {
    return paragraph(cat("There is no command to give: ", best->name,
                         " is broken, and no other "
                         "FP8 cache measured is nearer to ",
                         report.baseline.name, "."));
  }
  if (!best->scales) {
    return paragraph(cat(best->name,
                         " has no scales. vLLM runs so from a model folder without scales:")) +
           command_box({serve_command(report, *best, "MODEL-FOLDER")});
  }
  // The usual folder has one scale per layer.
  const std::string inject = cat("fp8kv inject MODEL-FOLDER --scales SCALES.json --out ", kCopy,
                                 best->scales->per_head() ? " --for vllm" : "");
  return paragraph(cat("The scales of ", best->name,
                       " go into a copy of the model, and vLLM serves the copy. SCALES.json is a "
                       "file that fp8kv calibrate made.")) +
         command_box({inject, serve_command(report, *best, kCopy)});
}

std::string scales_table(const EvalReport& report) {
  const CandidateReport* best = nearest_fp8(report);
  return best == nullptr || !best->scales ? "" : scales_table(*best->scales, best->name);
}

std::string scales_table(const KvScales& scales, const std::string& whose) {
  HtmlTable table{.caption = cat("The scales of ", whose,
                                 ": a value of the cache times its scale is K or V. Where each KV "
                                 "head has its own, the least and the largest."),
                  .header = {"layer", "K scale", "V scale", "heads"},
                  .rows = {},
                  .names = 1,
                  .sortable = true};
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    const LayerScales& layer = scales.layers[i];
    table.rows.push_back({{cat(i), ""},
                          scale_cell(layer.k),
                          scale_cell(layer.v),
                          {layer.k.size() > 1 ? cat(layer.k.size()) : "–", ""}});
  }
  return html_table(table);
}

}  // namespace fp8kv
