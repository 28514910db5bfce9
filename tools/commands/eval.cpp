#include <algorithm>

#include "backend/open/open.h"
#include "base/error.h"
#include "base/shell.h"
#include "calib/collect.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/identity/model_identity.h"
#include "commands/commands.h"
#include "commands/parts/advised_scales.h"
#include "commands/parts/eval_tasks.h"
#include "data/dataset.h"
#include "data/files/find_data.h"
#include "eval/evaluate.h"
#include "eval/gates.h"
#include "eval/greedy_texts.h"
#include "inputs/eval_candidates.h"
#include "inputs/known_config.h"
#include "inputs/model_text.h"
#include "options/kept_inputs.h"
#include "options/kv_dtype.h"
#include "options/output_files.h"
#include "options/run_date.h"
#include "report/advice.h"
#include "report/pages/html_report.h"
#include "report/text_plot.h"
#include "scales/rules/runtime_choice.h"
#include "scales/scale_file.h"
#include "scales/write/fate_of_copy.h"
#include "show/colour.h"
#include "show/eval/eval_json.h"
#include "show/eval/eval_markdown.h"
#include "show/eval/eval_summary.h"
#include "show/eval/eval_tables.h"
#include "show/junit.h"
#include "show/output.h"
#include "show/scales/certificate_text.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

constexpr size_t kShownTexts = 3;  // on the page

// The windows that predict something: those of two tokens or more.
WindowIds with_predictions(const EvalCommandOptions& options, const Windows& windows) {
  WindowIds usable = windows_that_predict(windows.ids);
  if (usable.empty()) {
    fail(names_of(options.data), ": no window has two tokens, so there is nothing to predict");
  }
  return usable;
}

// The text that policies were calibrated on, and the magnitudes counted in it.
struct PolicyText {
  Windows windows;
  CollectedMagnitudes collected;
};

// Collects magnitudes for the policies like `calibrate`: from every window, including windows that
// predict nothing. Records in the report what was counted.
PolicyText calibrate(const EvalCommandOptions& options, const ScaleChoice& choice,
                     const ModelOnBackend& model, Windows windows, EvalReport& report, Log& log) {
  std::vector<std::vector<int32_t>> ids = windows.ids;
  CollectOptions how;
  how.parts = put_parts_first(ids);
  how.losses = want_losses(choice);
  PolicyText found{std::move(windows), collect(model, ids, log, how)};
  CalibrationReport& about = report.calibration.emplace();
  about.same_data = options.calibrate_on.empty();
  about.data = found.windows.files;
  about.windows = ids.size();
  about.tokens = tokens_in(ids);
  // With few windows the parts of a quarter and an eighth may be the same.
  for (uint64_t before = 0; const AmaxAfter& part : found.collected.parts) {
    if (part.tokens > before && !about.same_data) about.convergence.push_back(part);
    before = part.tokens;
  }
  AmaxAfter& all = about.convergence.emplace_back();
  all.tokens = about.tokens;
  for (const LayerMagnitudes& layer : found.collected.layers) {
    all.layers.push_back(layer_amax(layer));
  }
  return found;
}

// The text to calibrate policies on: --calibrate-on, or else the evaluated text, with a note.
Windows policy_windows(const EvalCommandOptions& options, const ModelText& text,
                       const Windows& evaluated, Log& log) {
  if (!options.calibrate_on.empty()) return text.read(options.calibrate_on, log);
  log.note("policies are calibrated on the text that is evaluated; --calibrate-on takes another");
  return evaluated;
}

struct Against {
  Checkpoint checkpoint;
  ModelConfig config;
};

Against open_against(const EvalCommandOptions& options, Log& log) {
  Checkpoint checkpoint = Checkpoint::open(options.against);
  ModelConfig config = read_known_config(checkpoint, options.strict, log);
  return {std::move(checkpoint), std::move(config)};
}

// The paths as words of a shell command.
std::string words_of(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> words;
  for (const std::filesystem::path& path : paths) words.push_back(shell_path(path.string()));
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// "llama" of "models/llama/".
std::string name_of(const std::filesystem::path& folder) {
  const std::filesystem::path named = folder.filename().empty() ? folder.parent_path() : folder;
  return named.filename().string();
}

void check_outputs(const EvalCommandOptions& options, Log& log) {
  std::vector<InputPath> inputs = {
      {"MODEL", options.model}, {"--scales", options.scales}, {"--against", options.against}};
  add_inputs(inputs, "--data", options.data);
  add_inputs(inputs, "--calibrate-on", options.calibrate_on);
  const std::vector<OutputFile> outputs = {{"--junit", options.junit},
                                           {"--summary", options.summary},
                                           {"--report", options.report},
                                           {"--write-scales", options.write_scales}};
  check_inputs_kept(inputs, outputs);
  check_output_files(outputs, options.force);
  report_leftovers(outputs, log);
}

std::vector<Gate> gates_of(const EvalCommandOptions& options, Log& log) {
  std::vector<Gate> gates;
  for (const std::string& text : options.fail_if) {
    const auto parsed = with_context("--fail-if", [&] { return parse_gates(text); });
    gates.insert(gates.end(), parsed.begin(), parsed.end());
  }
  if (see_perplexity_alone(gates)) {
    log.warn(
        "--fail-if looks at perplexity alone, which a broken cache can lower; "
        "add --fail-if default");
  }
  return gates;
}

void write_junit(const EvalCommandOptions& options, const EvalReport& report,
                 const std::vector<GateResult>& results) {
  if (options.junit.empty()) return;
  std::vector<JunitCase> cases;
  for (const GateResult& each : results) {
    cases.push_back({each.candidate, each.gate, std::nullopt});
    if (each.failed) cases.back().failure = each.finding;
  }
  write_output_file(options.junit, junit_text("fp8kv eval " + report.model, cases), options.force);
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

// Carries out --write-scales. Returns its error, to be thrown after the figures that explain it are
// printed.
std::optional<Error> write_scales(const EvalCommandOptions& options, const Checkpoint& checkpoint,
                                  const PolicyText* calibrated, EvalReport& report, Log& log) {
  if (options.write_scales.empty()) return std::nullopt;
  try {
    const KvScales scales =
        advised_scales(checkpoint, report, calibrated->windows, calibrated->collected.parts);
    write_output_file(options.write_scales, scale_file_text(scales), options.force);
    log.note(written_note(options.write_scales, scales));
    report.scales_file = utf8_name(options.write_scales.string());
    return std::nullopt;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::check) throw;
    return error;
  }
}

// Adds texts that part for the page, if the model has a tokenizer.
void add_texts(const ModelOnBackend& model, const WindowIds& windows, const EvalOptions& options,
               EvalReport& report, Log& log) {
  const CandidateReport* cache = advise(report).cache;
  const std::optional<Tokenizer> tokenizer = Tokenizer::find_in(model.checkpoint.folder());
  if (cache == nullptr || !tokenizer) return;
  const auto text = [&](const std::vector<int32_t>& ids) { return tokenizer->decode(ids, false); };
  for (const PartedIds& each : parted_greedy_texts(
           model, parted_prompts(windows, cache->greedy, kShownTexts), options, *cache, log)) {
    const auto parted = std::ranges::mismatch(each.baseline, each.other).in1;
    report.texts.push_back({text(each.prompt), text(each.baseline), text(each.other),
                            static_cast<size_t>(parted - each.baseline.begin()) + 1});
  }
}

void check_write_scales(const EvalCommandOptions& options, const ScaleChoice& choice,
                        const EvalReport& report) {
  if (options.write_scales.empty() || want_magnitudes(choice, report.candidates)) return;
  throw Error("--write-scales: no scales are made here", "give --policy amax", ErrorKind::usage);
}

// Chooses the caches to measure, and the source of their scales.
ScaleChoice choose_candidates(const EvalCommandOptions& options, const Checkpoint& checkpoint,
                              EvalReport& report, Log& log) {
  ScaleChoice choice;
  if (options.against.empty()) {
    choice = choose_scales(options, checkpoint, report.config, log);
    report.candidates = make_candidates(options, choice, report.config, log);
  } else {
    report.candidates = candidates_against(options, checkpoint, report.config, choice, log);
    report.against = utf8_name(options.against.string());
  }
  check_write_scales(options, choice, report);
  return choice;
}

// Records the model and its baseline cache in the report.
void record_model(const EvalCommandOptions& options, const Checkpoint& checkpoint,
                  const ScaleChoice& choice, DType baseline, EvalReport& report) {
  report.tool_version = FP8KV_VERSION;
  report.model = utf8_name(options.model.string());
  report.fingerprint = fingerprint_of(model_identity(checkpoint, report.config));
  if (choice.scales) report.accepted_foreign = choice.scales->provenance.accepted_foreign;
  report.vllm = fate_of_copy(checkpoint, report.config, choose_runtimes("vllm").front());
  report.baseline.name = report.baseline.dtype_name = kv_dtype_name(baseline);
  if (options.against.empty()) return;
  report.baseline.name = cat(plain(name_of(options.against)), " ", report.baseline.dtype_name);
}

// Records the evaluated text in the report.
void record_windows(const Windows& windows, const WindowIds& evaluated, EvalReport& report) {
  report.data = windows.files;
  report.documents = windows.documents;
  report.windows = evaluated.size();
  report.tokens = tokens_in(evaluated);
}

// Prints the figures, and writes all files of results.
void show_results(const EvalCommandOptions& options, const EvalReport& report,
                  const std::vector<GateResult>& results) {
  options.json ? print(eval_json(report, results)) : show(eval_summary(report));
  if (options.table) show(eval_tables(report));
  if (options.plot) show("\n" + text_plot(report, kPlotColumns));
  write_junit(options, report, results);
  if (!options.summary.empty()) {
    write_output_file(options.summary, eval_markdown(report, results), options.force);
  }
  if (!options.report.empty()) {
    write_output_file(options.report, html_report(report), options.force);
  }
}

}  // namespace

void run_command(const EvalCommandOptions& given) {
  if (!given.task.tasks.empty()) return run_eval_tasks(given);
  Log log(given.verbosity);
  EvalCommandOptions options = given;
  options.data = find_data(given.data, given.choice.split, log);
  options.calibrate_on = find_data(given.calibrate_on, given.calibrate_split, log);
  check_outputs(options, log);
  EvalReport report;
  report.date = run_date();
  report.calibration_text = words_of(given.calibrate_on.empty() ? given.data : given.calibrate_on);
  const std::vector<Gate> gates = gates_of(options, log);
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  report.config = read_known_config(checkpoint, options.strict, log);
  std::optional<Against> against;
  if (!options.against.empty()) against.emplace(open_against(options, log));
  const DType baseline = baseline_dtype(options, against ? against->config : report.config);
  const ScaleChoice choice = choose_candidates(options, checkpoint, report, log);
  const ModelText text(checkpoint, report.config, {options.windows, options.choice, options.chat},
                       log);
  const Windows windows = text.read(options.data, log);
  const WindowIds evaluated = with_predictions(options, windows);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));
  report.device = backend->describe();
  record_model(options, checkpoint, choice, baseline, report);
  record_windows(windows, evaluated, report);

  const ModelOnBackend model{checkpoint, report.config, *backend};
  std::optional<PolicyText> calibrated;
  with_way_out("use a smaller --seq-len, fewer --samples or fewer candidates; or free memory", [&] {
    if (want_magnitudes(choice, report.candidates)) {
      calibrated.emplace(calibrate(options, choice, model,
                                   policy_windows(options, text, windows, log), report, log));
      add_policy_scales(calibrated->collected.layers, choice, report.config.latent.has_value(),
                        report.candidates);
    }
    with_unchanged(checkpoint, [&] {
      std::optional<EvalReference> reference;
      if (against) reference.emplace(EvalReference{against->checkpoint, against->config});
      const EvalOptions how{.baseline = baseline,
                            .against = reference ? &*reference : nullptr,
                            .greedy_tokens = options.greedy_tokens,
                            .threads = options.threads};
      evaluate(model, evaluated, how, report, log);
      if (!options.report.empty()) add_texts(model, evaluated, how, report, log);
    });
  });
  const std::vector<GateResult> results = check_gates(report, gates);
  log.end_progress();

  const std::optional<Error> unwritten =
      write_scales(options, checkpoint, calibrated ? &*calibrated : nullptr, report, log);
  show_results(options, report, results);
  throw_failures(results);
  if (unwritten) throw *unwritten;
}

}  // namespace fp8kv
