#include "cli/commands/cli_eval.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/commands/cli_eval_tasks.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "eval/gates.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

// Returns --kv-cache-dtype.
CLI::Option* add_eval_caches(CLI::App& command, EvalCommandOptions& options) {
  auto* dtypes = add_list(command, "--kv-cache-dtype", options.kv_cache_dtypes, kv_dtype_from_name,
                          cat("The caches to measure: ", join(kv_dtype_names(), ", ")));
  dtypes->check(a_kv_dtype())->default_str("fp8_e4m3")->type_name("DTYPE,...");
  add_skip_layers(
      command, options.skip_layers,
      "Layers left in the model's own dtype: numbers, and sliding_window for those with "
      "a window; those of the scale file unless given");
  return dtypes;
}

void add_eval_scales(CLI::App& command, EvalCommandOptions& options) {
  auto* scales =
      command.add_option("-s,--scales", options.scales, "Scale file, or a folder that has scales")
          ->check(a_path())
          ->type_name("FILE");
  auto* unit =
      command.add_flag("--unit-scales", options.unit_scales, "FP8 caches with every scale 1");
  auto* policies =
      add_list(command, "--policy", options.policies, parse_policy,
               cat("Make scales in these ways and compare them, instead of those that the model "
                   "carries. ",
                   policy_list()))
          ->check(a_policy())
          ->type_name("POLICY,...");
  add_accept_foreign(command, options.accept_foreign)->needs(scales);
  scales->excludes(unit)->excludes(policies);
  unit->excludes(policies);
}

// Returns --calibrate-on; read it with `results()`.
CLI::Option* add_calibrate_on(CLI::App& command, EvalCommandOptions& options) {
  auto* calibrate_on = add_values(command, "--calibrate-on",
                                  "Text for the scales of --policy; the --data itself unless given")
                           ->check(a_path())
                           ->type_name("FILE...");
  command
      .add_option("--calibrate-split", options.calibrate_split,
                  "--split for --calibrate-on: the two are often splits of one folder")
      ->check(a_path())
      ->needs(calibrate_on)
      ->type_name("NAME");
  return calibrate_on;
}

void add_eval_baseline(CLI::App& command, EvalCommandOptions& options) {
  command.add_option("--baseline", options.baseline, "The cache that others are compared with")
      ->check(a_kv_dtype())
      ->capture_default_str()
      ->type_name("DTYPE");
}

// Other kernels' arithmetic with the same caches.
void add_eval_arithmetic(CLI::App& command, EvalCommandOptions& options) {
  choice(command.add_option_function<std::string>(
             "--attention",
             [&options](const std::string& value) { options.fp8_attention = value == "fp8"; },
             "fp8: measure each fp8_e4m3 cache with attention in FP8 too, as FlashAttention 3 "
             "computes it: Q, by its scale, and the softmax's weights in E4M3"),
         {"16bit", "fp8"})
      ->default_str("16bit");
  choice(command.add_option_function<std::string>(
             "--fp8-rounding",
             [&options](const std::string& value) { options.toward_zero = value == "toward-zero"; },
             "toward-zero: measure each fp8_e4m3 cache rounded so too, as vLLM's kernel for "
             "processors rounds K and V"),
         {"nearest", "toward-zero"})
      ->default_str("nearest");
}

void add_eval_against(CLI::App& command, EvalCommandOptions& options) {
  command
      .add_option("--against", options.against,
                  "Another model, such as the one in 16 bit that MODEL was quantised from: MODEL "
                  "is compared with it, instead of with itself")
      ->check(a_path())
      ->type_name("MODEL");
}

void add_eval_gates(CLI::App& command, EvalCommandOptions& options) {
  std::vector<std::string> set;
  for (const DefaultGate& each : default_gates()) set.push_back(each.text);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Metric& each : metrics()) {
    rows.emplace_back(each.name,
                      cat(each.unit, ", ", better_name(each.better), " is better: ", each.summary));
  }
  command
      .add_option(
          "--fail-if", options.fail_if,
          cat("Exit with 1 if this holds for any candidate: METRIC OP NUMBER[%], as in "
              "\"kld > 0.05\", with a METRIC of the list below. \"",
              kDefaultGates, "\" tells caches that work from broken ones: it is ", join(set)))
      ->allow_extra_args(false)
      ->type_name("EXPR");
  add_help_table(command, "Metrics of --fail-if (a share is written as 0.01 or 1%)", rows);
  command.add_option("--junit", options.junit, "Also write the outcome of every --fail-if (XML)")
      ->check(a_path())
      ->type_name("FILE");
  add_summary(command, options.summary);
}

void add_eval_outputs(CLI::App& command, EvalCommandOptions& options) {
  add_report(command, options.report, "everything");
  command
      .add_option("--write-scales", options.write_scales,
                  "Write the scales of the advised cache, as 'fp8kv calibrate' would")
      ->check(a_path())
      ->type_name("FILE");
  command.add_flag("--table", options.table, "Also print the figures of every depth and layer");
  command.add_flag("--plot", options.plot, "Also draw ranges and errors of the layers as text");
  command.add_flag("-f,--force", options.force, "Replace existing output files");
}

}  // namespace

CLI::App* add_eval(CLI::App& app, EvalCommandOptions& options) {
  CLI::App* command = app.add_subcommand(
      "eval", "Measure what FP8 caches cost: perplexity, divergence, errors of every layer");
  set_examples(*command,
               {"fp8kv eval Llama-3.1-8B-kv --data b.txt --fail-if default --junit eval.xml",
                "fp8kv eval Qwen2.5-7B --data b.txt --calibrate-on a.txt --policy amax,unit",
                "fp8kv eval Llama-3.1-8B --data b.txt --kv-cache-dtype fp8_e4m3,fp8_e5m2",
                "fp8kv eval Llama-3.1-8B-FP8 --data b.txt --against Llama-3.1-8B"});
  command
      ->add_option("model", options.model,
                   "Model folder, or org/name[@revision] of the Hugging Face cache")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  auto* data = add_data(*command);
  auto* dtypes = add_eval_caches(*command, options);
  add_eval_scales(*command, options);
  auto* calibrate_on = add_calibrate_on(*command, options);
  add_eval_baseline(*command, options);
  add_eval_arithmetic(*command, options);
  add_eval_against(*command, options);
  add_eval_gates(*command, options);
  add_data_choice(*command, options.choice);
  add_shuffle(*command, options.choice);
  add_chat(*command, options.chat);
  add_windows(*command, options.windows, 2);
  command
      ->add_option("--greedy-tokens", options.greedy_tokens,
                   "Length of the greedy texts to compare; 0: none, which takes less memory")
      ->transform(whole_number(0, 1 << 20))
      ->capture_default_str()
      ->type_name("N");
  add_strict(*command, options.strict);
  add_device(*command, options.device, options.threads);
  add_eval_outputs(*command, options);
  add_common(*command, options);
  command->get_option("--plot")->excludes(command->get_option("--json"));
  command->get_option("--table")->excludes(command->get_option("--json"));
  add_eval_tasks(*command, options.task);
  data->required(false);
  command->final_callback([&options, data, calibrate_on, dtypes] {
    if (data->count() == 0 && options.task.tasks.empty()) throw CLI::RequiredError("--data");
    options.dtypes_given = dtypes->count() > 0;
    options.data.assign(data->results().begin(), data->results().end());
    options.calibrate_on.assign(calibrate_on->results().begin(), calibrate_on->results().end());
  });
  return command;
}

}  // namespace fp8kv
