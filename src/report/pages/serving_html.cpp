#include "report/pages/serving_html.h"

#include <algorithm>

#include "base/text.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "report/advice.h"
#include "report/pages/page_parts.h"
#include "report/serving.h"

namespace fp8kv {
namespace {

HtmlCell scale_cell(const std::vector<float>& heads) {
  if (heads.empty()) return {"–", "NaN"};
  const auto [least, most] = std::minmax_element(heads.begin(), heads.end());
  const std::string low = short_number(double{*least}, 4), high = short_number(double{*most}, 4);
  return {low == high ? high : cat(low, " – ", high), cat(*most)};
}

}  // namespace

std::string serve_words(const EvalReport& report) {
  const Serving serving = serving_of(report);
  if (serving.words.empty()) return "";
  return paragraph(serving.words) + (serving.commands.empty() ? "" : command_box(serving.commands));
}

std::string scales_table(const EvalReport& report) {
  const CandidateReport* cache = advise(report).cache;
  return cache == nullptr || !cache->scales ? "" : scales_table(*cache->scales, cache->name);
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
