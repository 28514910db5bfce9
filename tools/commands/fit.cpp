#include "fit/fit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/open/open.h"
#include "base/digest.h"
#include "base/error.h"
#include "calib/calibrated_scales.h"
#include "calib/run_identity.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "commands/commands.h"
#include "commands/parts/fit_formats.h"
#include "commands/parts/fit_runtime.h"
#include "data/dataset.h"
#include "data/files/find_data.h"
#include "files/output/finished_files.h"
#include "fit/measure_caches.h"
#include "inputs/known_config.h"
#include "inputs/model_text.h"
#include "inputs/scale_source.h"
#include "json/json.h"
#include "model/cache/capacity.h"
#include "options/kept_inputs.h"
#include "options/output_files.h"
#include "options/run_date.h"
#include "policy/make_scales.h"
#include "scales/rules/serving.h"
#include "scales/scale_file.h"
#include "show/fit/fit_html.h"
#include "show/fit/fit_text.h"
#include "show/output.h"
#include "show/scales/certificate_text.h"

namespace fp8kv {
namespace {

// Windows to choose on, and windows to confirm the choice on.
struct FitWindows {
  Windows choosing;
  FitText text;
};

// Every fourth window. Little text shows what a layer costs, and there are many layers.
WindowIds every_fourth(const WindowIds& windows) {
  WindowIds kept;
  for (size_t i = 0; i < windows.size(); i += 4) kept.push_back(windows[i]);
  return kept;
}

FitWindows read_fit_windows(const FitCommandOptions& options, const ModelText& text, Log& log) {
  FitWindows made;
  Windows all = text.read(options.data, log);
  if (options.held_out.empty()) {
    const size_t half = (all.ids.size() + 1) / 2;
    const auto middle = all.ids.begin() + static_cast<ptrdiff_t>(half);
    made.text.confirm = windows_that_predict({middle, all.ids.end()});
    made.choosing = first_windows(all, half);
  } else {
    made.text.confirm = windows_that_predict(text.read(options.held_out, log).ids);
    made.choosing = std::move(all);
  }
  made.text.costs = every_fourth(windows_that_predict(made.choosing.ids));
  if (!made.text.costs.empty() && !made.text.confirm.empty()) return made;
  const bool of_data = made.text.costs.empty() || options.held_out.empty();
  throw Error(cat(names_of(of_data ? options.data : options.held_out),
                  ": has too few windows of two tokens to choose on some and confirm on others"),
              "pass more text, or a shorter --seq-len");
}

// Gives the scales of a file to the formats that they fit. Formats that need no scales stay.
// Formats for other scales are left out with a note, or throw a usage Error if `asked`.
void take_scales(const KvScales& given, const std::string& source, bool asked,
                 std::vector<FitFormat>& formats, Log& log) {
  std::vector<FitFormat> kept;
  for (FitFormat& format : formats) {
    const std::optional<KvFormat> scaled = scales_for(format.type);
    if (scaled && is_nvfp4(*scaled) != is_nvfp4(given.format)) {
      const std::string why =
          cat(format.name, ": the scales of ", source, " are for another cache");
      if (asked) throw Error(why, "leave it out of --kv-cache-dtype", ErrorKind::usage);
      log.note(cat("left out: ", why));
      continue;
    }
    if (scaled) format.scales = with_format(given, *scaled);
    kept.push_back(std::move(format));
  }
  formats = std::move(kept);
  if (!formats.empty()) return;
  throw Error(cat("--scales: no cache to choose from takes the scales of ", source),
              "leave it out, or name caches with --kv-cache-dtype", ErrorKind::usage);
}

// Gives the formats scales of the policy, calibrated on the text for choosing. One calibration
// serves all formats.
void calibrate_formats(const FitCommandOptions& options, const ModelOnBackend& model,
                       const Windows& windows, std::vector<FitFormat>& formats, Log& log) {
  std::optional<Calibrated> calibrated;
  for (FitFormat& format : formats) {
    const std::optional<KvFormat> scaled = scales_for(format.type);
    if (!scaled) continue;
    const KvFormat stored = stored_format(*scaled);
    check_policy_for(options.policy, stored);
    if (!calibrated) {
      calibrated = calibrated_scales(model.checkpoint, model.config, model.backend,
                                     {.windows = windows,
                                      .shards = {},
                                      .policy = options.policy,
                                      .format = stored,
                                      .max_memory = std::nullopt},
                                     log);
    }
    KvScales scales = calibrated->scales;
    scales.format = stored;
    apply_policy(options.policy, calibrated->magnitudes, scales);
    format.scales = with_format(scales, *scaled);
  }
}

// Gives the formats the scales of --scales, or else calibrated ones.
void give_scales(const FitCommandOptions& options, const ModelOnBackend& model,
                 const Windows& windows, std::vector<FitFormat>& formats, Log& log) {
  if (options.scales.empty()) return calibrate_formats(options, model, windows, formats, log);
  const KvScales given =
      load_scales_for(options.scales, options.accept_foreign, model.checkpoint, model.config, log);
  take_scales(given, quote(options.scales.string()), !options.kv_cache_dtypes.empty(), formats,
              log);
}

// The unit of the budget, the bytes of a cache in that unit, and the limit.
struct BudgetUnit {
  std::string name;
  std::function<uint64_t(const ModelCache&)> bytes;
  std::optional<uint64_t> most;
};

BudgetUnit unit_of(const FitCommandOptions& options, const Checkpoint& checkpoint,
                   const ModelConfig& config) {
  if (options.memory == 0 && options.context == 0) {
    return {"B/token",
            [&config](const ModelCache& cache) { return kv_bytes_per_token(config, cache); },
            options.bytes_per_token};
  }
  const int64_t context = options.context > 0 ? options.context : config.max_seq_len;
  if (context <= 0) {
    throw Error(cat(quote(options.model.string()), ": does not say how long its context is"),
                "pass --context", ErrorKind::usage);
  }
  const Deployment deployment{options.memory, options.tp, options.batch, context};
  const WeightBytes weights = weight_bytes(checkpoint);
  const auto plan = [&config, weights, deployment](const ModelCache& cache) {
    const TokenBytes bytes = token_bytes(config, cache);
    return plan_cache(config, weights, deployment, bytes, bytes);
  };
  BudgetUnit unit{"B/sequence",
                  [plan](const ModelCache& cache) { return plan(cache).bytes_per_sequence; },
                  std::nullopt};
  if (options.memory > 0) {
    const CachePlan own = plan(ModelCache(CacheType(config.dtype)));
    unit.most = own.free_bytes / static_cast<uint64_t>(options.batch);
    if (own.free_bytes == 0) {
      throw Error(cat("--memory: the weights take all of ", options.memory, " bytes"),
                  "give more memory, or more GPUs with --tp", ErrorKind::usage);
    }
  }
  return unit;
}

void check_outputs(const FitCommandOptions& options, Log& log) {
  std::vector<InputPath> inputs = {{"MODEL", options.model}, {"--scales", options.scales}};
  add_inputs(inputs, "--data", options.data);
  add_inputs(inputs, "--held-out", options.held_out);
  const std::vector<OutputFile> outputs = {{"--out", options.out}, {"--report", options.report}};
  check_inputs_kept(inputs, outputs);
  check_output_files(outputs, options.force);
  if (options.out == "-") {
    throw Error("--out -: standard output has the table", "name a file", ErrorKind::usage);
  }
  report_leftovers(outputs, log);
  if (!options.resume) return;
  const OutputFile kept = {.flag = "--resume",
                           .path = FinishedFiles::path_for(options.out),
                           .is_folder = true,
                           .own = true};
  check_inputs_kept(inputs, {kept});
  report_leftovers({kept}, log);
}

void check_scale_source(const FitCommandOptions& options) {
  if (options.scales.empty() || !options.policy_given) return;
  throw Error("--scales and --policy cannot be given together", "leave one out", ErrorKind::usage);
}

void note_runtime(const FitRuntime& runtime, Log& log) {
  if (runtime.caches->skips_layers) return;
  log.note(cat("note: ", runtime.text,
               " leaves no layers in 16 bit, so that only whole caches are measured"));
}

// Everything that decides the measurements, as one text.
std::string fit_identity(const FitCommandOptions& options, const ModelOnBackend& model,
                         const FitText& text, const FitReport& report, const FitRuntime& runtime) {
  JsonWriter json;
  json.begin_object().member("runtime", runtime.text);
  json.member("max_kld", report.budget.max_kld ? cat(*report.budget.max_kld) : "");
  json.member("most_bytes", report.budget.most_bytes ? cat(*report.budget.most_bytes) : "");
  json.member("memory", options.memory).member("context", options.context);
  json.member("batch", options.batch).member("tp", options.tp).key("formats").begin_array();
  for (const FitFormat& each : report.formats) {
    Sha256 scales;
    if (each.scales) scales.add(scale_file_text(*each.scales));
    json.value(cat(each.name, " ", scales.hex()));
  }
  json.end_array().member("confirmed", windows_digest(text.confirm));
  const RunIdentity run =
      run_identity(FP8KV_VERSION, model.checkpoint, model.config, text.costs, model.backend);
  for (const RunPart& part : run.parts) json.member(part.key, part.value);
  return json.end_object().text();
}

// Writes the scale file. Returns its error, to be thrown after the table that explains it is
// printed.
std::optional<Error> write_choice(const FitCommandOptions& options, const FitReport& report,
                                  Log& log) {
  if (options.out.empty() || !report.chosen) return std::nullopt;
  const FitPoint& point = report.points[*report.chosen].point;
  const FitFormat& format = report.formats[point.format];
  if (!format.scales) {
    return Error(cat("--out: ", format.name, " makes its own scales: nothing was written"),
                 "serve with the flags above, or choose among caches with scales: "
                 "--kv-cache-dtype fp8",
                 ErrorKind::check);
  }
  KvScales scales = with_format(*format.scales, stored_format(format.scales->format));
  scales.skipped = point.left;
  write_output_file(options.out, scale_file_text(scales), options.force);
  log.note(written_note(options.out, scales));
  return std::nullopt;
}

// The place where the choice is served: its runtime, and the memory there.
struct Serving {
  FitRuntime runtime;
  BudgetUnit unit;
  std::string dropped;  // see FitSubject::dropped
};

// Throws if no choice meets the budget, and names the nearest one.
[[noreturn]] void fail_unmet(const FitReport& report, const Serving& serving) {
  const auto nearest = std::min_element(
      report.points.begin(), report.points.end(), [&](const auto& a, const auto& b) {
        return report.budget.max_kld ? a.total.kld < b.total.kld : a.point.bytes < b.point.bytes;
      });
  const std::string name = fit_point_name(report, nearest->point);
  const std::string found =
      report.budget.max_kld
          ? cat("no cache keeps --max-kld ", significant(*report.budget.max_kld), ": the least is ",
                significant(nearest->total.kld, 3), " ± ", significant(nearest->total.kld_error, 2),
                ", of ", name)
          : cat("no cache takes ", grouped(*report.budget.most_bytes), " ", serving.unit.name,
                " or less: the smallest is ", grouped(nearest->point.bytes), ", of ", name);
  throw Error(serving.runtime.caches->skips_layers || !report.budget.max_kld
                  ? found
                  : cat(found, "; ", serving.runtime.text, " leaves no layers in 16 bit"),
              "allow more, add caches with --kv-cache-dtype, or serve in 16 bit", ErrorKind::check);
}

// The model, the runtime, and how it serves the choice.
FitSubject subject_of(const FitCommandOptions& options, const Serving& serving,
                      const ModelConfig& config, const FitReport& report) {
  FitSubject subject{.model = utf8_name(options.model.string()),
                     .runtime = serving.runtime.text,
                     .launcher = serving.runtime.server ? serving.runtime.server->before : "",
                     .dtype_flag = {},
                     .unit = serving.unit.name,
                     .scales = utf8_name(options.out.string()),
                     .dropped = serving.dropped,
                     .copy_for = {},
                     .config = config};
  if (report.chosen) {
    const FitFormat& format = report.formats[report.points[*report.chosen].point.format];
    subject.dtype_flag = dtype_flag(serving.runtime, format);
    if (format.scales && format.scales->per_head()) subject.copy_for = " --for vllm";
  }
  return subject;
}

void show_result(const FitCommandOptions& options, const FitReport& report,
                 const FitSubject& subject) {
  options.json ? print(fit_json(report, subject)) : print_text(fit_text(report, subject));
  if (options.report.empty()) return;
  write_output_file(options.report, fit_html(report, subject, {run_date(), FP8KV_VERSION}),
                    options.force);
}

}  // namespace

void run_command(const FitCommandOptions& given) {
  Log log(given.verbosity);
  FitCommandOptions options = given;
  options.data = find_data(given.data, given.choice.split, log);
  options.held_out = find_data(given.held_out, given.choice.split, log);
  check_outputs(options, log);
  check_scale_source(options);
  Serving serving{runtime_of(options), {}, {}};
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_known_config(checkpoint, options.strict, log);
  serving.unit = unit_of(options, checkpoint, config);
  serving.dropped = take_dropped(checkpoint, config, serving.runtime, options, log);
  FitReport report;
  report.budget = {options.max_kld, serving.unit.most};
  report.formats = fit_formats(options, *serving.runtime.caches, config, log);
  const ModelText text(checkpoint, config, {options.windows, options.choice, options.chat}, log);
  const FitWindows windows = read_fit_windows(options, text, log);
  report.choosing_tokens = tokens_in(windows.choosing.ids);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));
  note_runtime(serving.runtime, log);

  const ModelOnBackend model{checkpoint, config, *backend};
  std::optional<KeptMeasurements> kept;
  const auto measure = [&] {
    fit(model, windows.text,
        {.mixes = serving.runtime.caches->skips_layers,
         .bytes = serving.unit.bytes,
         .threads = options.threads,
         .kept = kept ? &*kept : nullptr},
        report, log);
  };
  with_way_out("use a smaller --seq-len or fewer --samples; or free memory", [&] {
    with_unchanged(checkpoint, [&] {
      give_scales(options, model, windows.choosing, report.formats, log);
      if (!options.resume) return measure();
      kept.emplace(options.out, fit_identity(options, model, windows.text, report, serving.runtime),
                   log);
      keeping(kept->files(), "measurements", measure);
    });
  });
  log.end_progress();

  const FitSubject subject = subject_of(options, serving, config, report);
  const std::optional<Error> unwritten = write_choice(options, report, log);
  show_result(options, report, subject);
  if (kept) kept->remove();
  if (!report.chosen) fail_unmet(report, serving);
  if (unwritten) throw *unwritten;
}

}  // namespace fp8kv
