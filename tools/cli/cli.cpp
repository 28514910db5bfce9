#include "cli/cli.h"

#include <deque>
#include <limits>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/cli_about.h"
#include "cli/cli_arguments.h"
#include "cli/cli_brackets.h"
#include "cli/cli_usage.h"
#include "cli/commands/cli_attest.h"
#include "cli/commands/cli_calibrate.h"
#include "cli/commands/cli_equalize.h"
#include "cli/commands/cli_eval.h"
#include "cli/commands/cli_extract.h"
#include "cli/commands/cli_fit.h"
#include "cli/commands/cli_inject.h"
#include "cli/commands/cli_quantize.h"
#include "cli/commands/cli_run.h"
#include "cli/commands/cli_tokenize.h"
#include "cli/commands/cli_verify.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "files/output/write_file.h"
#include "options/byte_size.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

constexpr const char* kGeneralFooter =
    "\nExamples:\n"
    "  fp8kv calibrate MODEL --data articles.jsonl -o scales.json\n"
    "  fp8kv inject MODEL --scales scales.json -o MODEL-kv\n"
    "  fp8kv run MODEL-kv --prompt \"London is the capital of\"\n"
    "\n'fp8kv help COMMAND' says more about each. 'fp8kv completions bash', zsh or fish\n"
    "prints what a shell needs to complete them, 'fp8kv man COMMAND' a manual page.\n"
    "\nExit codes: 0 done, 1 a check failed, 2 wrong usage, 3 unusable input, 4 no such\n"
    "device or undecided, 5 out of memory or disk, 130 interrupted.\n";

CLI::App* add_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Say what a model folder or file is, and which scales it carries");
  set_examples(*command, {"fp8kv inspect Llama-3.1-8B-kv", "fp8kv inspect scales.json --json"});
  command->add_option("path", options.path, "Model folder, .safetensors or scale file")
      ->required()
      ->check(a_path())
      ->type_name("PATH");
  command->add_flag("--certificate", options.certificate,
                    "Say only whether the scales are safe, and which layers need them");
  auto* plot = command->add_flag("--plot", options.plot,
                                 "Only draw the ranges of the layers as text, against what the "
                                 "format holds");
  add_report(*command, options.report, "the certificate");
  command->add_flag("-f,--force", options.force, "Replace an existing page of --report");
  add_no_cache(*command, options.no_cache);
  add_common(*command, options);
  plot->excludes(command->get_option("--json"));
  return command;
}

CLI::App* add_diff(CLI::App& app, DiffOptions& options) {
  CLI::App* command = app.add_subcommand(
      "diff", "Compare the scales of two model folders or scale files, layer by layer");
  set_examples(*command, {"fp8kv diff Llama-3.1-8B-kv scales.json",
                          "fp8kv diff old.json new.json --tolerance 0.01"});
  command->add_option("a", options.a, "Model folder or scale file")
      ->required()
      ->check(a_path())
      ->type_name("A");
  command->add_option("b", options.b, "The other one")->required()->check(a_path())->type_name("B");
  command
      ->add_option("--tolerance", options.tolerance,
                   "How far a ratio may be from 1; 0 asks for the same but for the last place")
      ->check(number_between(0, 1e6))
      ->capture_default_str()
      ->type_name("X");
  add_no_cache(*command, options.no_cache);
  add_common(*command, options);
  return command;
}

CLI::App* add_merge(CLI::App& app, MergeOptions& options) {
  CLI::App* command = app.add_subcommand(
      "merge", "Make one scale file of several calibrations, as if they had been run at once");
  set_examples(*command,
               {"fp8kv merge part-*.json -o scales.json",
                "fp8kv merge part-*.json --policy mse --histograms part-*.hist -o mse.json"});
  command->add_option("parts", options.parts, "Scale files of 'fp8kv calibrate', in any order")
      ->required()
      ->check(a_path())
      ->type_name("FILE...");
  command->add_option("-o,--out", options.out, "Scale file to write; - for stdout")
      ->required()
      ->check(a_path())
      ->type_name("FILE");
  auto* policy = add_policy(*command, "How to make the scales, instead of as the parts were made");
  auto* histograms =
      add_values(*command, "--histograms",
                 "What 'calibrate --histograms' wrote for the parts, in any order: for loss, mse "
                 "and percentiles")
          ->check(a_path())
          ->type_name("FILE...");
  auto* table = add_layer_table(*command, options.table);
  command->add_flag("-f,--force", options.force, "Replace an existing file");
  add_common(*command, options);
  table->excludes(command->get_option("--json"));
  command->final_callback([&options, policy, histograms] {
    options.policy = given_policy(*policy);
    options.histograms.assign(histograms->results().begin(), histograms->results().end());
  });
  return command;
}

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* command = app.add_subcommand(
      "plan", "Say what a KV cache costs, what fits and what decoding can gain; reads no weights");
  set_examples(*command, {"fp8kv plan Llama-3.1-70B --memory 80GiB --tp 4",
                          "fp8kv plan Llama-3.1-8B --batch 64 --context 4096"});
  command
      ->add_option("model", options.model,
                   "Model folder or org/name[@revision]; any architecture with K and V")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  command
      ->add_option_function<std::string>(
          "--memory", [&](const std::string& value) { options.memory = *bytes_from_text(value); },
          "Memory of each GPU that weights and cache may take, such as 80GiB")
      ->check(a_byte_size())
      ->type_name("SIZE");
  command
      ->add_option("--gpu-memory-utilization", options.memory_share,
                   "The share of --memory that the runtime takes, as vLLM has it")
      ->check(number_above(0, 1))
      ->capture_default_str()
      ->type_name("SHARE");
  add_list(*command, "--kv-cache-dtype", options.kv_cache_dtypes, plan_dtype_name,
           "What the cache holds, one row each. Any of " + join(plan_dtype_names(), " or "))
      ->allow_extra_args(true)
      ->check(a_plan_dtype())
      ->default_str("auto,fp8")
      ->type_name("DTYPE,...");
  add_skip_layers(
      *command, options.skip_layers,
      "Layers left in the model's own dtype: numbers, and sliding_window for those with "
      "a window");
  command->add_option("--tp", options.tp, "GPUs that share the model (tensor parallel)")
      ->transform(whole_number(1, 1 << 16))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--batch", options.batch, "Sequences in a decode step")
      ->transform(whole_number(1, 1 << 24))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--context", options.context, "Tokens in a sequence; the model's context")
      ->transform(whole_number(1, std::numeric_limits<int32_t>::max()))
      ->type_name("N");
  command->add_flag("--calibration-time", options.calibration_time,
                    "Also measure for a second how long 'fp8kv calibrate' takes on this machine");
  add_no_cache(*command, options.no_cache);
  add_common(*command, options);
  return command;
}

CLI::App* add_doctor(CLI::App& app, DoctorOptions& options) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine has to compute with, and why a GPU is not used");
  set_examples(*command, {"fp8kv doctor --json"});
  add_common(*command, options);
  return command;
}

// Options live in a deque, because the flags of each command point into them.
using Commands = std::deque<std::pair<CLI::App*, Options>>;

template <typename T>
void add_command(Commands& commands, CLI::App& app, CLI::App* (*add_flags)(CLI::App&, T&)) {
  auto& [command, options] = commands.emplace_back(nullptr, T{});
  command = add_flags(app, std::get<T>(options));
}

}  // namespace

std::optional<ParsedCommand> parse_command_line(int argc, char** argv) {
  CLI::App app{"FP8 KV-cache scales for LLM checkpoints: make them, move them, run with them.",
               "fp8kv"};
  // read_arguments turns this flag into the command `version`.
  app.add_flag_callback(
      "-V,--version", [] {}, "Print the version, how it was built, and with which libraries");
  app.require_subcommand(1);
  app.footer(kGeneralFooter);
  Commands commands;
  add_command(commands, app, add_calibrate);
  add_command(commands, app, add_inject);
  add_command(commands, app, add_quantize);
  add_command(commands, app, add_equalize);
  add_command(commands, app, add_fit);
  add_command(commands, app, add_verify);
  add_command(commands, app, add_extract);
  add_command(commands, app, add_run);
  add_command(commands, app, add_eval);
  add_command(commands, app, add_attest);
  add_command(commands, app, add_inspect);
  add_command(commands, app, add_diff);
  add_command(commands, app, add_merge);
  add_command(commands, app, add_plan);
  add_command(commands, app, add_tokenize);
  add_command(commands, app, add_doctor);
  add_about(app);
  take_off_marks(app);
  try {
    app.parse(marked(read_arguments(app, argc, argv)));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    write_stdout(help_text(chosen.empty() ? app : *chosen[0]));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    fail_usage(app, error);
  }
  if (const auto text = text_about(app)) {
    write_stdout(*text);
    return std::nullopt;
  }
  for (const auto& [command, options] : commands) {
    if (*command) return ParsedCommand{command->get_name(), options};
  }
  FP8KV_ASSERT(false);
}

}  // namespace fp8kv
