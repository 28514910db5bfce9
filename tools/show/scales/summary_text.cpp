#include "show/scales/summary_text.h"

#include "base/terminal_text.h"
#include "base/text.h"
#include "report/pages/scales_html.h"
#include "show/output.h"

namespace fp8kv {
std::string scales_page(const std::filesystem::path& about, const KvScales& scales,
                        const ServingNames& names, const std::string& date) {
  const std::string name = model_name(about);
  return scales_html(scales, {.name = name.empty() ? about.string() : name,
                              .names = names,
                              .date = date,
                              .tool_version = FP8KV_VERSION});
}

std::string and_drafts(const KvScales& scales) {
  if (scales.drafts.empty()) return "";
  return cat(" and ", count_of(scales.drafts.size(), "draft layer"));
}

std::string summary_text(const KvScales& scales, const ServingNames& names) {
  const ScalesSummary summary = summary_of(scales, certify(scales), names);
  return cat(sentence("made      " + terminal_line(summary.made), 10), "\n",
             sentence("at 1.0    " + terminal_line(summary.at_1), 10), "\nnext      ",
             terminal_line(summary.next), "\n\n");
}

}  // namespace fp8kv
