#include "policy/merge.h"

#include "base/error.h"
#include "commands/commands.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "policy/histogram_file.h"
#include "scales/scale_file.h"
#include "show/colour.h"
#include "show/output.h"
#include "show/scales/calibration_summary.h"
#include "show/scales/certificate_text.h"
#include "show/scales/summary_text.h"

namespace fp8kv {
namespace {

std::string summary_json(const MergeOptions& options, const KvScales& scales) {
  const Provenance& provenance = scales.provenance;
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.merge/1")
      .member("out", utf8_name(options.out.string()));
  json.member("parts", uint64_t{options.parts.size()});
  json.member("complete", provenance.shards.of == 0);
  certificate_json(json, scales);
  return json.end_object().text();
}

}  // namespace

void run_command(const MergeOptions& options) {
  Log log(options.verbosity);
  std::vector<InputPath> inputs;
  add_inputs(inputs, "FILE", options.parts);
  add_inputs(inputs, "--histograms", options.histograms);
  const std::vector<OutputFile> outputs = {{"--out", options.out}};
  check_inputs_kept(inputs, outputs);
  check_output_files(outputs, options.force);
  check_json_apart(options.json, options.out);
  report_leftovers(outputs, log);
  std::vector<Calibration> parts;
  for (const std::filesystem::path& path : options.parts) {
    parts.push_back({quote(path.string()), load_scale_file(path, log)});
  }
  MergeBy by{.policy = options.policy};
  for (const std::filesystem::path& path : options.histograms) {
    by.histograms.push_back({quote(path.string()), read_histogram_file(path)});
  }
  const KvScales merged = merge_calibrations(parts, log, by);
  write_output_file(options.out, scale_file_text(merged), options.force);
  if (options.out == "-") return;
  log.note(written_note(options.out, merged));
  if (options.json) return print(summary_json(options, merged));
  show(options.table ? calibration_tables(merged)
                     : calibration_summary(merged, serving_names(options.out, "", merged.format)));
}

}  // namespace fp8kv
