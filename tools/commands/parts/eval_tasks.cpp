#include "commands/parts/eval_tasks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/open/open.h"
#include "base/error.h"
#include "calib/collect.h"
#include "checkpoint/identity/model_identity.h"
#include "data/data_source.h"
#include "data/files/find_data.h"
#include "eval/evaluate.h"
#include "inputs/chat_text.h"
#include "inputs/eval_candidates.h"
#include "inputs/known_config.h"
#include "inputs/model_text.h"
#include "inputs/task_chats.h"
#include "options/kept_inputs.h"
#include "options/kv_dtype.h"
#include "options/output_files.h"
#include "options/run_date.h"
#include "report/tasks/tasks_html.h"
#include "show/eval/eval_markdown.h"
#include "show/eval/task_text.h"
#include "show/junit.h"
#include "show/output.h"
#include "tasks/task.h"
#include "text/tokenizer.h"

namespace fp8kv {
namespace {

void check_task_outputs(const EvalCommandOptions& options, Log& log) {
  std::vector<InputPath> inputs = {{"MODEL", options.model},
                                   {"--scales", options.scales},
                                   {"--few-shot-from", options.task.few_shot_from}};
  for (const TaskArgument& each : options.task.tasks) inputs.push_back({"--task", each.file});
  add_inputs(inputs, "--data", options.data);
  add_inputs(inputs, "--calibrate-on", options.calibrate_on);
  const std::vector<OutputFile> outputs = {
      {"--junit", options.junit}, {"--summary", options.summary}, {"--report", options.report}};
  check_inputs_kept(inputs, outputs);
  check_output_files(outputs, options.force);
  report_leftovers(outputs, log);
}

// The files of text from which policies make scales. Throws if there are none.
std::vector<std::filesystem::path> policy_text(const EvalCommandOptions& options, Log& log) {
  if (!options.calibrate_on.empty()) {
    return find_data(options.calibrate_on, options.calibrate_split, log);
  }
  if (!options.data.empty()) return find_data(options.data, options.choice.split, log);
  throw Error("--task: the model carries no scales, and there is no text to make some on",
              "give --calibrate-on FILE, --scales FILE, or --unit-scales", ErrorKind::usage);
}

// Returns the files that were read.
std::vector<DataFile> make_policy_scales(const EvalCommandOptions& options,
                                         const Checkpoint& checkpoint, const ModelConfig& config,
                                         Backend& backend, const ScaleChoice& choice,
                                         std::vector<CandidateReport>& candidates, Log& log) {
  const ModelText text(checkpoint, config, {options.windows, options.choice, options.chat}, log);
  const Windows windows = text.read(policy_text(options, log), log);
  CollectOptions how;
  how.losses = want_losses(choice);
  add_policy_scales(collect_magnitudes({checkpoint, config, backend}, windows.ids, log, how),
                    choice, config.latent.has_value(), candidates);
  return windows.files;
}

const Tokenizer& needed_tokenizer(const Checkpoint& checkpoint,
                                  const std::optional<Tokenizer>& tokenizer) {
  if (tokenizer) return *tokenizer;
  throw Error(cat(quote(checkpoint.folder().string()), ": has no ", Tokenizer::kFiles),
              "tasks need the model's tokenizer");
}

TaskRequest request_of(const TaskOptions& options, const TaskArgument& task) {
  return {task.file,          options.items, options.few_shot, options.few_shot_from,
          options.acceptance, options.needle};
}

std::vector<TaskCache> caches_of(DType baseline, const std::vector<CandidateReport>& candidates,
                                 const ModelConfig& config) {
  std::vector<TaskCache> caches = {{kv_dtype_name(baseline), CacheType(baseline), nullptr}};
  for (const CandidateReport& each : candidates) {
    caches.push_back({each.name, cache_of(each, config), each.scales ? &*each.scales : nullptr});
  }
  return caches;
}

void write_task_junit(const EvalCommandOptions& options, const std::vector<TaskReport>& reports) {
  if (options.junit.empty()) return;
  std::vector<JunitCase> cases;
  for (const TaskReport& report : reports) {
    for (const TaskCacheReport& cache : report.caches) {
      cases.push_back(
          {cache.name,
           cat(report.task, " ", report.file, report.accepts() ? ": " + report.acceptance : ""),
           std::nullopt});
      const std::string why = refusal_of(report, cache);
      if (!why.empty()) cases.back().failure = why;
    }
  }
  write_output_file(options.junit,
                    junit_text("fp8kv eval " + utf8_name(options.model.string()), cases),
                    options.force);
}

// The files with items and examples. Pipes can be read only once, so they are left out.
std::vector<DataFile> item_files(const TaskOptions& options) {
  std::vector<std::filesystem::path> paths;
  const auto add = [&](const std::filesystem::path& path) {
    const bool again = std::find(paths.begin(), paths.end(), path) != paths.end();
    if (!again && std::filesystem::is_regular_file(path)) paths.push_back(path);
  };
  for (const TaskArgument& task : options.tasks) add(task.file);
  if (!options.few_shot_from.empty()) add(options.few_shot_from);
  std::vector<DataFile> files;
  for (const std::filesystem::path& path : paths) files.push_back(open_data(path).file);
  return files;
}

std::string scales_text(const EvalCommandOptions& options, const ScaleChoice& choice) {
  if (!choice.policies.empty()) return "by policy, as the caches are named";
  if (!choice.scales) return "1 everywhere";
  return options.scales.empty() ? "of the checkpoint" : utf8_name(options.scales.string());
}

// The facts that are known before the run, or none without --report.
TasksPageFacts page_facts(const EvalCommandOptions& options, const ScaleChoice& choice) {
  if (options.report.empty()) return {};
  TasksPageFacts facts;
  facts.model = utf8_name(options.model.string());
  facts.scales = scales_text(options, choice);
  facts.files = item_files(options.task);
  facts.date = run_date();
  facts.tool_version = FP8KV_VERSION;
  return facts;
}

void write_tasks_page(const EvalCommandOptions& options, const std::vector<TaskReport>& reports,
                      const TaskRunFacts& run, TasksPageFacts facts) {
  if (options.report.empty()) return;
  facts.fingerprint = run.fingerprint;
  facts.device = run.device;
  write_output_file(options.report, tasks_html(reports, facts), options.force);
}

// Ends with "check" if a cache is refused, and with "undecided" if the items only were too few.
void throw_refusals(const std::vector<TaskReport>& reports) {
  std::string text;
  ErrorKind kind = ErrorKind::undecided;
  for (const TaskReport& report : reports) {
    for (const TaskCacheReport& cache : report.caches) {
      const std::string why = refusal_of(report, cache);
      if (why.empty()) continue;
      text += (text.empty() ? "" : "; ") + why;
      if (cache.test->decision() == Decision::refused) kind = ErrorKind::check;
    }
  }
  if (!text.empty()) throw Error(text, "", kind);
}

}  // namespace

void run_eval_tasks(const EvalCommandOptions& options) {
  Log log(options.verbosity);
  check_task_outputs(options, log);
  // Reads the items first, so that a bad item is found before any other work.
  std::vector<Task> tasks;
  for (const TaskArgument& task : options.task.tasks) {
    tasks.push_back(task.row->read(request_of(options.task, task)));
  }
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  const ModelConfig config = read_known_config(checkpoint, options.strict, log);
  const DType baseline = baseline_dtype(options, config);
  const ScaleChoice choice = choose_scales(options, checkpoint, config, log);
  std::vector<CandidateReport> candidates = make_candidates(options, choice, config, log);
  const std::optional<Tokenizer> found = Tokenizer::find_in(checkpoint.folder());
  const Tokenizer& tokenizer = needed_tokenizer(checkpoint, found);
  ChatText chats(checkpoint.folder(), options.chat, tokenizer, log);
  const auto [backend, why] = open_backend(options.device, options.threads);
  log.note(cat("computing on ", backend->describe(), why));
  TasksPageFacts page = page_facts(options, choice);
  std::vector<TaskReport> reports;
  with_way_out("use fewer candidates or shorter items, or free memory", [&] {
    if (want_magnitudes(choice, candidates)) {
      page.scale_text =
          make_policy_scales(options, checkpoint, config, *backend, choice, candidates, log);
    }
    const TaskModel model = {checkpoint,
                             config,
                             *backend,
                             tokenizer,
                             messages_encoder(chats, tokenizer),
                             answers_encoder(chats, tokenizer),
                             caches_of(baseline, candidates, config),
                             options.threads};
    with_unchanged(checkpoint, [&] {
      for (size_t i = 0; i < tasks.size(); ++i) {
        const TaskArgument& asked = options.task.tasks[i];
        reports.push_back(
            run_task(asked.row->name, tasks[i], request_of(options.task, asked), model, log));
      }
    });
  });
  log.end_progress();
  const TaskRunFacts facts = {utf8_name(options.model.string()),
                              fingerprint_of(model_identity(checkpoint, config)),
                              backend->describe()};
  options.json ? print(tasks_json(facts, reports)) : print_text(task_summary(reports));
  write_task_junit(options, reports);
  if (!options.summary.empty()) {
    write_output_file(options.summary, tasks_markdown(facts.model, reports), options.force);
  }
  write_tasks_page(options, reports, facts, std::move(page));
  throw_refusals(reports);
}

}  // namespace fp8kv
