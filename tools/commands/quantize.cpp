#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "backend/open/open.h"
#include "base/error.h"
#include "base/shell.h"
#include "calib/calibrated_scales.h"
#include "calib/measure/input_ranges.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/identity/made_for.h"
#include "commands/commands.h"
#include "data/files/find_data.h"
#include "files/output/finished_files.h"
#include "inputs/known_config.h"
#include "inputs/model_text.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "quantize/linear_choice.h"
#include "quantize/quantize_folder.h"
#include "quantize/schemes.h"
#include "scales/rules/serving.h"
#include "scales/write/arrival.h"
#include "show/made_files.h"
#include "show/output.h"
#include "show/verify/runtime_report.h"

namespace fp8kv {
namespace {

struct Serve {
  std::string runtime;
  std::string command;
};

// Commands that serve the folder. FP8 weights need no flag; flags for an FP8 cache are there for
// the KV scales.
std::vector<Serve> serving(const QuantizeOptions& options, const QuantizeReport& report) {
  const std::string out = options.out.string();
  std::vector<Serve> commands;
  if (report.facts) {
    for (const ServeCommand& each : serve_commands(*report.facts, out)) {
      commands.push_back({each.runtime, each.command});
    }
  }
  if (!commands.empty()) return commands;
  return {{"vLLM", cat("vllm serve ", shell_path(out))}};
}

std::string report_json(const QuantizeOptions& options, const QuantizeReport& report) {
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.quantize/1")
      .member("out", utf8_name(options.out.string()));
  json.member("scheme", options.scheme).member("dry_run", options.dry_run);
  json.member("matrices", report.plan.matrices);
  json.member("bytes_before", report.plan.before_bytes);
  json.member("bytes_after", report.plan.after_bytes);
  json.member("left_alone", std::span<const std::string>(report.ignore));
  json.member("kept_shards", report.kept_shards);
  json.member("written_bytes", report.written_bytes);
  made_files_json(json, report.files);
  json.member("skipped", std::span<const std::string>(report.skipped));
  json.member("notes", std::span<const std::string>(report.notes));
  json.member("warnings", std::span<const std::string>(report.warnings));
  json.key("serve").begin_array();
  for (const Serve& each : serving(options, report)) {
    json.begin_object().member("runtime", each.runtime);
    json.member("command", utf8_name(each.command)).end_object();
  }
  json.end_array();
  if (report.facts) runtimes_json(json, *report.facts);
  return json.end_object().text();
}

std::string report_text(const QuantizeOptions& options, const QuantizeReport& report) {
  const FolderPlan& plan = report.plan;
  std::string text = made_files_line(report.files);
  text +=
      cat("\n", options.scheme, ": ", fp8_scheme_at(options.scheme).summary, "\n", plan.matrices,
          plan.matrices == 1 ? " matrix" : " matrices", " in FP8: all tensors took ",
          human_bytes(plan.before_bytes), " and take ", human_bytes(plan.after_bytes), "\n");
  text += cat("Left alone: embeddings, norms and biases; ", join(report.ignore), "\n");
  if (report.facts)
    text += "\n" + runtimes_summary(*report.facts,
                                    "fp8kv verify " + shell_path(options.out.string()) + " --all");
  text += "\nServe it with\n";
  for (const Serve& each : serving(options, report)) {
    text += cat("  ", each.command, "\n");
  }
  return text;
}

void check_outputs(const QuantizeOptions& options, Log& log) {
  std::vector<InputPath> inputs = {{"MODEL", options.model}, {"--scales", options.scales}};
  add_inputs(inputs, "--data", options.data);
  const OutputFile out = {.flag = "--out", .path = options.out, .is_folder = true};
  check_inputs_kept(inputs, {out});
  const OutputFile finished = {.flag = "--resume",
                               .path = FinishedFiles::path_for(options.out),
                               .is_folder = true,
                               .own = true};
  if (options.resume) check_inputs_kept(inputs, {finished});
  if (!options.dry_run) report_leftovers({out, finished}, log);
}

// The scales of a file or folder, checked against the model.
KvScales given_scales(const QuantizeOptions& options, const Checkpoint& checkpoint, Log& log) {
  KvScales scales = load_scales(options.scales, log);
  const ScalesFit fit =
      check_made_for(scales, checkpoint, describe_model(checkpoint), quote(options.scales.string()),
                     {options.accept_foreign, kAcceptForeign});
  if (!fit.foreign.empty()) scales.provenance.accepted_foreign = fit.foreign;
  for (const std::string& line : fit.notes) log.note("note: " + line);
  for (const std::string& line : fit.warnings) log.warn(line);
  return scales;
}

struct OfData {
  KvScales scales;
  std::map<std::string, float> inputs;  // see quantize_folder
};

// Calibrates on --data. With `with_inputs` the pass computes whole layers, to measure the inputs of
// every product.
OfData measured(const QuantizeOptions& options, const Checkpoint& checkpoint,
                const ModelConfig& config, bool with_inputs, Log& log) {
  const ModelText text(checkpoint, config, {options.windows, options.choice, options.chat}, log);
  const Windows windows = text.read(options.data, log);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));
  const ModelConfig written = written_config(config);
  std::optional<InputRanges> inputs;
  if (with_inputs) inputs.emplace(*backend, written);
  Calibrated made =
      calibrated_scales(checkpoint, config, inputs ? static_cast<Backend&>(*inputs) : *backend,
                        {.windows = windows,
                         .shards = {},
                         .policy = options.policy,
                         .max_memory = options.max_memory,
                         .inputs = inputs ? &*inputs : nullptr},
                        log);
  return {std::move(made.scales), inputs ? inputs->input_amax() : std::map<std::string, float>()};
}

void check_data(const QuantizeOptions& options, const Fp8Scheme& scheme) {
  if (!scheme.static_inputs || !options.data.empty()) return;
  throw Error(cat("--scheme ", scheme.name, ": needs --data: text that what matrices multiply is ",
                  "measured on"),
              "pass text like what the model will be served with, or take --scheme fp8-dynamic, "
              "which needs none",
              ErrorKind::usage);
}

}  // namespace

void run_command(const QuantizeOptions& given) {
  Log log(given.verbosity);
  QuantizeOptions options = given;
  check_data(options, fp8_scheme_at(options.scheme));
  options.data = find_data(given.data, given.choice.split, log);
  if (options.out == "-") {
    throw Error("--out: '-' is no folder", "name a folder to make", ErrorKind::usage);
  }
  check_outputs(options, log);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  check_unquantised(checkpoint);
  const ModelConfig config = read_known_config(checkpoint, options.strict, log);
  const Fp8Scheme& scheme = fp8_scheme_at(options.scheme);
  QuantizeFolderOptions how{.scheme = &scheme,
                            .threads = options.threads,
                            .dry_run = options.dry_run,
                            .overwrite = options.force,
                            .resume = options.resume,
                            .version = FP8KV_VERSION};
  const LinearChoice choice = with_way_out(
      kReplaceOutput, [&] { return check_quantisable(checkpoint, config, options.out, how); });
  std::optional<KvScales> scales;
  std::map<std::string, float> inputs;
  if (!options.scales.empty()) {
    scales = given_scales(options, checkpoint, log);
  } else if (!options.data.empty()) {
    OfData found = measured(options, checkpoint, config, scheme.static_inputs, log);
    scales = std::move(found.scales);
    inputs = std::move(found.inputs);
  }
  if (scales) how.scales = &*scales;
  if (scheme.static_inputs) how.inputs = &inputs;
  const QuantizeReport report = with_way_out(
      kReplaceOutput, [&] { return quantize_folder(checkpoint, choice, options.out, how, log); });
  for (const std::string& line : report.skipped) log.note("left behind: " + line);
  if (report.kept_shards > 0) {
    log.note(cat("took ", count_of(report.kept_shards, "shard"), " of an earlier run"));
  }
  for (const std::string& line : report.notes) log.note("note: " + line);
  for (const std::string& line : report.warnings) log.warn(line);
  log.note(cat(options.dry_run ? "would write " : "wrote ", human_bytes(report.written_bytes),
               options.dry_run ? " to make " : " and made ", quote(options.out.string())));
  options.json ? print(report_json(options, report)) : print_text(report_text(options, report));
}

}  // namespace fp8kv
