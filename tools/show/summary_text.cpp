#include "show/summary_text.h"

#include "base/shell.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "report/scales_html.h"
#include "show/output.h"

namespace fp8kv {
namespace {

// "Llama-3" of "models/Llama-3/" and of the cache's "models--org--Llama-3/snapshots/0a1b"; "" where
// the path has no name of its own.
std::string model_name(const std::filesystem::path& model) {
  const std::filesystem::path folder = model.has_filename() ? model : model.parent_path();
  const std::string name = folder.filename().string();
  if (name == "." || name == "..") return "";
  if (folder.parent_path().filename() != "snapshots") return name;
  const std::string cached = folder.parent_path().parent_path().filename().string();
  const size_t dashes = cached.rfind("--");
  return dashes == cached.npos ? name : cached.substr(dashes + 2);
}

}  // namespace

ServingNames serving_names(const std::filesystem::path& scales,
                           const std::filesystem::path& model) {
  ServingNames names;
  names.scales = shell_path(scales.string());
  if (model.empty()) return names;
  names.model = shell_path(model.string());
  const std::string name = model_name(model);
  if (!name.empty()) names.copy = shell_path(name + "-fp8");
  return names;
}

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
