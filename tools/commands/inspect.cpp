#include "base/error.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/drafts/drafter.h"
#include "checkpoint/files/partial_folder.h"
#include "checkpoint/identity/fingerprint.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "commands/commands.h"
#include "formats/safetensors.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "options/run_date.h"
#include "report/text_plot.h"
#include "scales/read/stores/open_store.h"
#include "show/colour.h"
#include "show/models/checkpoint_text.h"
#include "show/models/tensor_list.h"
#include "show/output.h"
#include "show/scales/certificate_text.h"
#include "show/scales/scales_text.h"
#include "show/scales/summary_text.h"

namespace fp8kv {
namespace {

void check_evidence(const InspectOptions& options, const KvScales& scales) {
  if (has_evidence(scales)) return;
  throw Error(cat(quote(options.path.string()),
                  ": has scales, but not the magnitudes that they were made from, so "
                  "there is nothing to certify them by"),
              "a scale file of 'fp8kv calibrate' has them");
}

// Prints the certificate, the plot, or both, from any source of scales.
void inspect_certificate(const InspectOptions& options) {
  Log log(options.verbosity);
  const KvScales scales = load_scales(options.path, log);
  check_evidence(options, scales);
  if (options.certificate && !options.json) {
    show(summary_text(scales, serving_names(options.path, "", scales.format)) +
         certificate_text(scales));
  }
  if (options.plot) show((options.certificate ? "\n" : "") + text_plot(scales, kPlotColumns));
  if (!options.json) return;
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "certificate");
  json.member("source", utf8_name(options.path.string()));
  certificate_json(json, scales);
  print(json.end_object().text());
}

// Throws the refusal of scales that exist but cannot be used.
void throw_refusal(const InspectOptions& options, const FoundScales& found) {
  if (found.absent || !found.refusal) return;
  Log log(options.verbosity);
  say_diagnoses(options.path, found.diagnoses, log);
  throw *found.refusal;
}

void inspect_scale_folder(const InspectOptions& options) {
  const FoundScales found = survey_scales(options.path);
  throw_refusal(options, found);
  const auto partial = read_partial_record(options.path);
  const std::string address = partial ? partial->address : "";
  options.json ? print(scale_folder_json(options.path, address, found))
               : show(scale_folder_description(options.path, address, found));
}

void inspect_checkpoint(const InspectOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.path);
  CheckpointView view{checkpoint, describe_model(checkpoint), {}, {}, {}, {}};
  try {
    view.is_drafter = is_drafter(checkpoint.tensors());
    const ModelConfig config =
        view.is_drafter ? read_drafter_config(checkpoint) : read_model_config(checkpoint);
    if (!checkpoint.is_partial()) {
      view.fingerprint = fingerprint_of(model_identity(checkpoint, config));
    }
    view.unknown_keys = config.unknown_keys;
    view.stored_as = config.stored_as;
    view.compute_dtype = torch_name(config.dtype);
  } catch (const Error& error) {
    checkpoint.check_unchanged();
    view.not_runnable = error;
    if (!checkpoint.is_partial()) view.fingerprint = find_fingerprint(checkpoint, view.model);
  }
  view.found = survey_scales(checkpoint);
  throw_refusal(options, view.found);
  options.json ? print(checkpoint_json(view)) : show(checkpoint_description(view));
}

void inspect_safetensors(const InspectOptions& options) {
  const SafetensorsHeader header = read_safetensors_header(options.path);
  options.json ? print(tensor_list_json(options.path, header))
               : print_text(tensor_list_text(header));
}

void inspect_scale_file(const InspectOptions& options) {
  const FoundScales found = survey_scales(options.path);
  options.json ? print(scale_file_json(options.path, found))
               : show(scale_file_description(options.path, found));
}

void inspect(const InspectOptions& options) {
  if (options.certificate || options.plot) return inspect_certificate(options);
  switch (source_kind(options.path)) {
    case SourceKind::scale_folder:
      return inspect_scale_folder(options);
    case SourceKind::model_folder:
      return inspect_checkpoint(options);
    case SourceKind::safetensors:
      return inspect_safetensors(options);
    case SourceKind::scale_file:
      return inspect_scale_file(options);
    case SourceKind::missing:
      break;
  }
  throw Error(cat(quote(options.path.string()), ": no such file or folder"), "check the path");
}

// Makes the page before anything is printed. It is written after printing.
std::string page_of(const InspectOptions& options) {
  const std::vector<OutputFile> outputs = {{"--report", options.report}};
  check_inputs_kept({{"PATH", options.path}}, outputs);
  check_output_files(outputs, options.force);
  Log log(options.verbosity);
  report_leftovers(outputs, log);
  const std::string date = run_date();
  Log silent(Verbosity::quiet);
  const KvScales scales = load_scales(options.path, silent);
  check_evidence(options, scales);
  return scales_page(options.path, scales, serving_names(options.path, "", scales.format), date);
}

}  // namespace

void run_command(const InspectOptions& options) {
  if (options.report.empty()) return inspect(options);
  const std::string page = page_of(options);
  inspect(options);
  write_output_file(options.report, page, options.force);
}

}  // namespace fp8kv
