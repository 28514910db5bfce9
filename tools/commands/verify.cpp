#include <algorithm>

#include "base/error.h"
#include "commands/commands.h"
#include "commands/parts/verify_with.h"
#include "inputs/scale_source.h"
#include "options/kept_inputs.h"
#include "options/kv_dtype.h"
#include "options/output_files.h"
#include "report/evidence.h"
#include "scales/verify/verify_scales.h"
#include "show/output.h"
#include "show/verify/verify_json.h"
#include "show/verify/verify_text.h"

namespace fp8kv {
namespace {

std::vector<ChosenRuntime> asked_runtimes(const VerifyOptions& options) {
  if (options.runtimes.empty()) return usual_runtimes();
  std::vector<ChosenRuntime> asked;
  for (const std::string& text : options.runtimes) {
    const auto more = with_context("--runtime", [&] { return choose_runtimes(text); });
    asked.insert(asked.end(), more.begin(), more.end());
  }
  return asked;
}

ServingCase serving_case(const VerifyOptions& options) {
  ServingCase serving;
  if (options.kv_cache_dtype.starts_with("fp8")) serving.flag = CacheFlag::fp8;
  if (makes_own_scales(options.kv_cache_dtype)) serving.flag = CacheFlag::own_scales;
  if (options.kv_cache_dtype == "nvfp4") serving.flag = CacheFlag::nvfp4;
  if (options.kv_cache_dtype == "auto") serving.flag = CacheFlag::automatic;
  if (options.kv_cache_dtype == "fp8_e5m2") serving.flag = CacheFlag::e5m2;
  for (const Gpu& gpu : known_gpus()) {
    if (options.gpu == gpu.name) serving.fnuz = gpu.fnuz;
  }
  return serving;
}

void throw_losses(const VerifyOptions& options, const VerifyReport& report) {
  if (report.arrives) return;
  if (report.refusal) {
    throw Error(cat("the scales cannot be used: ", report.refusal->what()), report.refusal->help(),
                ErrorKind::check);
  }
  const auto lost = std::find_if(report.runtimes.begin(), report.runtimes.end(),
                                 [](const auto& each) { return !each.fixes.empty(); });
  std::string text = cat(quote(options.path.string()), ": not every scale arrives");
  for (const std::string& each : verify_failures(report)) text += "; " + each;
  throw Error(text, lost == report.runtimes.end() ? "" : lost->fixes[0], ErrorKind::check);
}

}  // namespace

void run_command(const VerifyOptions& options) {
  if (!options.with.empty()) return verify_with(options);
  Log log(options.verbosity);
  const VerifyRequest request{asked_runtimes(options), options.runtimes.empty(),
                              serving_case(options)};
  const std::vector<OutputFile> outputs = {{"--junit", options.junit},
                                           {"--summary", options.summary}};
  check_inputs_kept({{"PATH", options.path}}, outputs);
  check_output_files(outputs, options.force);
  report_leftovers(outputs, log);
  const VerifyReport report = verify_scales(options.path, request);
  // Says grave diagnoses, and others that are not harmless. If the scales are refused, most of
  // those others repeat the reason, so they are left out.
  std::vector<Diagnosis> said;
  std::copy_if(
      report.diagnoses.begin(), report.diagnoses.end(), std::back_inserter(said),
      [&](const Diagnosis& each) { return each.grave || (!each.harmless && !report.refusal); });
  say_diagnoses(options.path, said, log);
  for (const std::string& each : report.warnings) log.warn(each);
  const std::string missing = missing_evidence(report.provenance);
  const std::string little =
      missing.empty() ? "" : cat(quote(options.path.string()), ": ", missing);
  // Scales of other tools have no record of their text. They get no warning.
  if (!little.empty() && report.provenance.windows > 0) log.warn(little);
  const bool all = options.all || !options.runtimes.empty();
  const VerifyDetail detail = all ? VerifyDetail::all : VerifyDetail::newest;
  options.json ? print(verify_json(options, report)) : print_text(verify_text(report, detail));
  if (!options.junit.empty()) {
    write_output_file(options.junit, verify_junit(utf8_name(options.path.string()), report),
                      options.force);
  }
  if (!options.summary.empty()) {
    write_output_file(options.summary,
                      verify_markdown(utf8_name(options.path.string()), report, detail),
                      options.force);
  }
  throw_losses(options, report);
  if (!options.require_evidence || little.empty()) return;
  throw Error(little, "calibrate on more text", ErrorKind::check);
}

}  // namespace fp8kv
