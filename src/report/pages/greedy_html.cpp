#include "report/pages/greedy_html.h"

#include <algorithm>

#include "base/text.h"
#include "draw/html.h"
#include "report/advice.h"
#include "report/pages/text_pair.h"

namespace fp8kv {
namespace {

constexpr size_t kPromptBytes = 240;  // shown of a prompt

std::string column(const std::string& name, const std::string& text, size_t place) {
  return element("div", "",
                 cat("\n<h5>", escape_html(name), "</h5>\n<pre>", parted_text(text, place),
                     "</pre>\n")) +
         "\n";
}

}  // namespace

std::string greedy_texts_part(const EvalReport& report) {
  const CandidateReport* cache = advise(report).cache;
  if (cache == nullptr || report.texts.empty()) return "";
  const GreedyFigures& greedy = cache->greedy;
  size_t same = 0;
  for (size_t i = 0; i < greedy.agreed.size(); ++i) same += greedy.agreed[i] == greedy.length[i];
  const std::string words =
      cat("The likeliest token is taken each time. ", cache->name,
          " writes the baseline's text after ", same == 0 ? std::string("none") : cat(same), " of ",
          count_of(greedy.agreed.size(), "prompt"), ". These part first:");
  std::string out = element("p", "", escape_html(words)) + "\n";
  for (const PartedText& each : report.texts) {
    std::string prompt = cut_text(each.prompt, kPromptBytes);
    std::replace(prompt.begin(), prompt.end(), '\n', ' ');
    const size_t place = parting_place(each.baseline, each.other);
    out += cat("<h4>parts at token ", each.token,
               "</h4>\n<p class=\"note\">prompt: ", escape_html(prompt),
               "</p>\n<div class=\"pair\">\n",
               column(report.baseline.name + " (baseline)", each.baseline, place),
               column(cache->name, each.other, place), "</div>\n");
  }
  return out;
}

}  // namespace fp8kv
