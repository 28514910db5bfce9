#include <algorithm>
#include <optional>

#include "backend/open/open.h"
#include "base/error.h"
#include "calib/calibrated_scales.h"
#include "calib/collect.h"
#include "calib/measure/expert_reach.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/drafts/drafter.h"
#include "checkpoint/identity/fingerprint.h"
#include "checkpoint/identity/model_identity.h"
#include "commands/commands.h"
#include "data/files/find_data.h"
#include "files/output/write_file.h"
#include "inputs/known_config.h"
#include "inputs/model_cache.h"
#include "inputs/model_text.h"
#include "json/json.h"
#include "options/kept_inputs.h"
#include "options/kv_dtype.h"
#include "options/output_files.h"
#include "options/run_date.h"
#include "policy/histogram_file.h"
#include "policy/make_scales.h"
#include "report/evidence.h"
#include "report/text_plot.h"
#include "scales/rules/runtime_choice.h"
#include "scales/scale_file.h"
#include "scales/write/fate_of_copy.h"
#include "show/colour.h"
#include "show/output.h"
#include "show/scales/calibration_summary.h"
#include "show/scales/certificate_text.h"
#include "show/scales/draft_text.h"
#include "show/scales/summary_text.h"

namespace fp8kv {
namespace {

std::string summary_json(const CalibrateOptions& options, const KvScales& scales) {
  const Provenance& provenance = scales.provenance;
  JsonWriter json;
  json.begin_object()
      .member("schema", "fp8kv.calibrate/1")
      .member("out", utf8_name(options.out.string()));
  json.member("documents", provenance.documents).member("windows", provenance.windows);
  json.member("tokens", provenance.tokens).member("headroom", provenance.headroom);
  json.key("layers").begin_array();
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    json.begin_object().member("layer", static_cast<uint64_t>(i));
    json.member("k_scale", std::span<const float>(scales.layers[i].k));
    json.member("v_scale", std::span<const float>(scales.layers[i].v));
    json.member("k_amax", std::span<const float>(provenance.amax[i].k));
    json.member("v_amax", std::span<const float>(provenance.amax[i].v));
    json.member("q_amax", std::span<const float>(provenance.amax[i].q)).end_object();
  }
  json.end_array();
  drafts_json(json, scales.drafts);
  certificate_json(json, scales);
  return json.end_object().text();
}

// Keeps the windows of --shard, and notes them. Warns if 'fp8kv merge' will miss histograms.
ShardNote keep_shard(const CalibrateOptions& options, Windows& windows, Log& log) {
  const ShardNote shards = with_context(cat("--shard ", options.shard.index, "/", options.shard.of),
                                        [&] { return take_shard(windows, options.shard); });
  if (shards.of == 0) return shards;
  log.note(cat("shard ", options.shard.index, "/", shards.of, ": ", windows.ids.size(), " of ",
               count_of(shards.windows, "window"), ", ", count_of(windows.tokens, "token")));
  if (needs_histograms(*options.policy.kind) && options.histograms.empty()) {
    log.warn(cat("'fp8kv merge' needs the histograms of every shard for the policy ",
                 quote(options.policy.text), ": add --histograms FILE"));
  }
  return shards;
}

// The state that --resume continues from, or nothing without --resume.
std::optional<CalibrationState> state_for(const CalibrateOptions& options,
                                          const Checkpoint& checkpoint, const ModelConfig& config,
                                          const Windows& windows, const Backend& backend) {
  if (!options.resume) return std::nullopt;
  RunIdentity run = run_identity(FP8KV_VERSION, checkpoint, config, windows.ids, backend);
  const bool each_head = options.policy.kind->sharing == ScaleSharing::head;
  run.parts.push_back({"samples", "way of choosing windows (--samples)",
                       !options.windows.until_settled ? "all"
                       : each_head                    ? "until heads settle"
                                                      : "until layers settle"});
  if (options.policy.kind->needs == PolicyNeeds::losses) {
    run.parts.push_back({"losses", "measurement of losses (--policy)", "yes"});
  }
  return CalibrationState(CalibrationState::path_for(options.out), std::move(run));
}

void check_state(const CalibrateOptions& options, const std::filesystem::path& state) {
  if (options.out == "-") {
    throw Error(
        "--resume: needs a file beside which it keeps its state, and --out is standard output",
        "name a file with --out", ErrorKind::usage);
  }
  for (const OutputFile& other :
       {OutputFile{"--histograms", options.histograms}, OutputFile{"--report", options.report}}) {
    if (!same_output(state, other.path)) continue;
    throw Error(cat(other.flag, ": ", quote(state.string()), " is where --resume keeps its state"),
                "name another file", ErrorKind::usage);
  }
}

void check_outputs(const CalibrateOptions& options, Log& log) {
  std::vector<InputPath> inputs = {{"MODEL", options.model}};
  if (!options.target.empty()) inputs.push_back({"--target", options.target});
  add_inputs(inputs, "--data", options.data);
  const std::vector<OutputFile> outputs = {
      {"--out", options.out}, {"--histograms", options.histograms}, {"--report", options.report}};
  const OutputFile state = {
      .flag = "--resume", .path = CalibrationState::path_for(options.out), .own = true};
  check_inputs_kept(inputs, outputs);
  if (options.resume) check_inputs_kept(inputs, {state});
  check_output_files(outputs, options.force);
  check_json_apart(options.json, options.out);
  if (options.resume) check_state(options, state.path);
  report_leftovers(outputs, log);
  if (options.out != "-") report_leftovers({state}, log);
}

// The model that a drafter drafts for.
struct Target {
  Target(const CalibrateOptions& options, const ModelConfig& drafter, Log& log)
      : checkpoint(Checkpoint::open(options.target)),
        config(read_known_config(checkpoint, options.strict, log)) {
    check_target(drafter, config, cat("--target ", quote(options.target.string())));
  }

  Checkpoint checkpoint;
  ModelConfig config;
};

void check_activations(const ModelConfig& drafter, const ModelConfig& target,
                       const Backend& backend) {
  if (backend.activation_dtype(drafter.dtype) == backend.activation_dtype(target.dtype)) return;
  throw Error(cat("the drafter's weights are ", torch_name(drafter.dtype), " and the target's ",
                  torch_name(target.dtype), ", which this device does not compute together"),
              "compute on the CPU: --device cpu");
}

// Bytes of one token with these scales, and in the model's own dtype.
BytesOfToken memory_of(const ModelConfig& config, const ModelCache& cache) {
  const ModelCache own(config.dtype);
  return {.own_dtype = std::string(torch_name(config.dtype)),
          .own_bytes = kv_bytes_per_token(config, own),
          .format_bytes = kv_bytes_per_token(config, cache)};
}

ServingNames names_for(const CalibrateOptions& options, const KvScales& scales,
                       const Checkpoint& checkpoint, const ModelConfig& config) {
  ServingNames names = serving_names(options.out, options.model, scales.format);
  names.drafter = !options.target.empty();
  if (!names.drafter) {
    names.vllm = fate_of_copy(checkpoint, config, choose_runtimes("vllm").front());
  }
  return names;
}

// Writes the histograms, if they are asked for, and the scale file.
void write_scales(const CalibrateOptions& options, const Calibrated& calibrated) {
  if (!options.histograms.empty()) {
    write_output_file(options.histograms, histogram_file_bytes(calibrated.magnitudes),
                      options.force);
  }
  write_output_file(options.out, scale_file_text(calibrated.scales), options.force);
}

void show_result(const CalibrateOptions& options, const KvScales& scales, const ServingNames& names,
                 const BytesOfToken& memory) {
  if (options.json) return print(summary_json(options, scales));
  if (options.table) {
    show(calibration_tables(scales));
  } else {
    show(calibration_summary(scales, names, memory));
  }
  if (options.plot) show("\n" + text_plot(scales, kPlotColumns));
}

void check_evidence(const CalibrateOptions& options, const Provenance& provenance) {
  if (!options.require_evidence) return;
  const std::string missing = missing_evidence(provenance);
  if (missing.empty()) return;
  throw Error(cat(quote(options.out.string()), ": ", missing), "calibrate on more text",
              ErrorKind::check);
}

}  // namespace

void run_command(const CalibrateOptions& given) {
  Log log(given.verbosity);
  CalibrateOptions options = given;
  options.data = find_data(given.data, given.choice.split, log);
  check_outputs(options, log);
  const std::string date = options.report.empty() ? "" : run_date();
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const bool drafts = !options.target.empty();
  const ModelConfig config = drafts ? read_known_drafter(checkpoint, options.strict, log)
                                    : read_known_config(checkpoint, options.strict, log);
  std::optional<Target> target;
  if (drafts) target.emplace(options, config, log);
  const Checkpoint& run_checkpoint = target ? target->checkpoint : checkpoint;
  const ModelConfig& run_config = target ? target->config : config;
  const ModelCache cache = model_cache(*kv_dtype_from_name(options.kv_cache_dtype), config.dtype,
                                       options.skip_layers, config);
  check_policy_for(options.policy, options.format);
  const ModelText text(run_checkpoint, run_config, {options.windows, options.choice, options.chat},
                       log);
  Windows windows = text.read(options.data, log);
  const ShardNote shards = keep_shard(options, windows, log);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));
  if (target) check_activations(config, run_config, *backend);
  const Drafter drafter{checkpoint, config};
  std::optional<CalibrationState> state = state_for(options, checkpoint, config, windows, *backend);
  const Calibrated calibrated = calibrated_scales(run_checkpoint, run_config, *backend,
                                                  {.windows = windows,
                                                   .shards = shards,
                                                   .until_settled = options.windows.until_settled,
                                                   .policy = options.policy,
                                                   .format = options.format,
                                                   .skipped = cache.left,
                                                   .max_memory = options.max_memory,
                                                   .state = state ? &*state : nullptr,
                                                   .drafter = target ? &drafter : nullptr},
                                                  log);
  const KvScales& scales = calibrated.scales;

  write_scales(options, calibrated);
  const ServingNames names = names_for(options, scales, checkpoint, config);
  if (!options.report.empty()) {
    write_output_file(options.report, scales_page(options.model, scales, names, date),
                      options.force);
  }
  if (state) state->remove();
  log.end_progress();
  if (options.out != "-") {
    log.note(written_note(options.out, scales));
    show_result(options, scales, names, memory_of(config, cache));
  }
  check_evidence(options, scales.provenance);
}

}  // namespace fp8kv
