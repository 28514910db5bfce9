#include "backend/open/open.h"
#include "base/error.h"
#include "calib/convergence.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/read_model_config.h"
#include "cli/kv_dtype.h"
#include "cli/output.h"
#include "commands/commands.h"
#include "data/dataset.h"
#include "eval/evaluate.h"
#include "eval/gates.h"
#include "inputs/eval_candidates.h"
#include "inputs/model_text.h"
#include "report/html_report.h"
#include "report/text_plot.h"
#include "show/eval_json.h"
#include "show/eval_tables.h"

namespace fp8kv {
namespace {

constexpr int kPlotColumns = 80;

WindowOptions window_options(const EvalCommandOptions& options, const ModelConfig& config,
                             Log& log) {
  return {.max_windows = options.samples,
          .exact = options.samples_given,
          .seq_len = window_length(options.seq_len, options.seq_len_given, config, log),
          .max_windows_name = "--samples",
          .seq_len_name = "--seq-len"};
}

// Windows of one token predict nothing.
std::vector<std::vector<int32_t>> with_predictions(const Windows& windows) {
  std::vector<std::vector<int32_t>> usable;
  for (const auto& window : windows.ids) {
    if (window.size() > 1) usable.push_back(window);
  }
  if (usable.empty()) fail("no window has two tokens, so there is nothing to predict");
  return usable;
}

// The text for the scales of policies: its magnitudes, and what the report says of it.
std::vector<LayerMagnitudes> calibrate(const EvalCommandOptions& options,
                                       const Checkpoint& checkpoint, Backend& backend,
                                       const std::vector<std::vector<int32_t>>& evaluated,
                                       EvalReport& report, Log& log) {
  const ModelConfig& config = report.config;
  CalibrationReport& about = report.calibration.emplace();
  Windows windows;
  std::vector<size_t> counts = {evaluated.size()};
  about.same_data = options.calibrate_on.empty();
  if (about.same_data) {
    log.note("policies are calibrated on the text that is evaluated; --calibrate-on takes another");
    about.data = report.data;
  } else {
    windows = read_windows(options.calibrate_on, make_encoder(checkpoint, config),
                           window_options(options, config, log), log);
    const size_t n = windows.ids.size();
    counts = {n / 8, n / 4, n / 2, n};
    about.data = windows.files;
  }
  Convergence found = collect_in_parts(checkpoint, config, backend,
                                       about.same_data ? evaluated : windows.ids, counts, log);
  about.windows = counts.back();
  about.tokens = found.parts.back().tokens;
  about.convergence = std::move(found.parts);
  return std::move(found.magnitudes);
}

void write_junit(const EvalCommandOptions& options, const EvalReport& report,
                 const std::vector<GateResult>& results) {
  if (options.junit.empty()) return;
  write_file_atomically(options.junit, junit_text(report, results), options.force);
}

void throw_failures(const std::vector<GateResult>& results) {
  std::vector<std::string> failures;
  for (const GateResult& each : results) {
    if (each.failed)
      failures.push_back(cat(each.candidate, ": ", each.finding, " (", each.gate, ")"));
  }
  if (failures.empty()) return;
  std::string text = cat(failures.size(), " of ", count_of(results.size(), "check"), " failed");
  for (const std::string& each : failures) text += "; " + each;
  throw Error(text, "", ErrorKind::check);
}

}  // namespace

void run_command(const EvalCommandOptions& options) {
  Log log(options.verbosity);
  check_output_file(options.junit, options.force);
  check_output_file(options.report, options.force);
  std::vector<Gate> gates;
  for (const std::string& text : options.fail_if) {
    gates.push_back(with_context("--fail-if", [&] { return parse_gate(text); }));
  }
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  EvalReport report;
  report.config = read_model_config(checkpoint);
  const ModelConfig& config = report.config;
  const DType baseline = baseline_dtype(options, config);
  const ScaleChoice choice = choose_scales(options, checkpoint, config, log);
  report.candidates = make_candidates(options, choice, config);
  const Windows windows = read_windows(options.data, make_encoder(checkpoint, config),
                                       window_options(options, config, log), log);
  const std::vector<std::vector<int32_t>> evaluated = with_predictions(windows);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));

  report.tool_version = FP8KV_VERSION;
  report.model = utf8_name(options.model.string());
  report.fingerprint = model_fingerprint(checkpoint, config);
  report.device = backend->describe();
  report.data = windows.files;
  report.documents = windows.documents;
  report.windows = evaluated.size();
  report.tokens = tokens_in(evaluated);
  report.baseline.name = report.baseline.dtype_name = kv_dtype_name(baseline);
  with_way_out("use a smaller --seq-len, fewer --samples or fewer candidates; or free memory", [&] {
    if (want_magnitudes(choice, report.candidates)) {
      add_policy_scales(calibrate(options, checkpoint, *backend, evaluated, report, log), choice,
                        report.candidates);
    }
    evaluate(
        checkpoint, *backend, evaluated,
        {.baseline = baseline, .greedy_tokens = options.greedy_tokens, .threads = options.threads},
        report, log);
  });
  const std::vector<GateResult> results = check_gates(report, gates);
  print(options.json ? eval_json(report, results) : eval_tables(report));
  if (options.plot && !options.json) print("\n" + text_plot(report, kPlotColumns));
  write_junit(options, report, results);
  if (!options.report.empty()) {
    write_file_atomically(options.report, html_report(report), options.force);
  }
  throw_failures(results);
}

}  // namespace fp8kv
