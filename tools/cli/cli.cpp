#include "cli/cli.h"

#include <deque>
#include <limits>
#include <map>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/cli_about.h"
#include "cli/cli_arguments.h"
#include "cli/cli_brackets.h"
#include "cli/cli_usage.h"
#include "cli/commands/cli_attest.h"
#include "cli/commands/cli_calibrate.h"
#include "cli/commands/cli_checks.h"
#include "cli/commands/cli_equalize.h"
#include "cli/commands/cli_eval.h"
#include "cli/commands/cli_extract.h"
#include "cli/commands/cli_fit.h"
#include "cli/commands/cli_flags.h"
#include "cli/commands/cli_quantize.h"
#include "cli/commands/cli_tokenize.h"
#include "cli/commands/cli_verify.h"
#include "files/output/copy_file.h"
#include "files/output/write_file.h"
#include "options/byte_size.h"
#include "options/kv_dtype.h"
#include "scales/write/inject.h"

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

CLI::App* add_inject(CLI::App& app, InjectCommandOptions& options) {
  CLI::App* command = app.add_subcommand(
      "inject", "Make a model folder that is an old one plus scales; weights are linked");
  set_examples(*command, {"fp8kv inject Llama-3.1-8B --scales scales.json -o Llama-3.1-8B-kv",
                          "fp8kv inject model -s scales.json -o model-kv --dry-run"});
  command->add_option("model", options.model, "Model folder or org/name[@revision]; never modified")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  command->add_option("-s,--scales", options.scales, "Scale file, or a folder that has scales")
      ->required()
      ->check(a_path())
      ->type_name("FILE");
  command->add_option("-o,--out", options.out, "Folder to make")
      ->required()
      ->check(a_path())
      ->type_name("OUT");
  std::vector<std::string> targets;
  for (const InjectTarget& target : inject_targets()) targets.push_back(target.name);
  choice(command->add_option("--for", options.target, "The runtime to write for"), targets)
      ->capture_default_str();
  choice(command->add_option_function<std::string>(
             "--scale-rounding",
             [&](const std::string& value) { options.powers_of_two = value == "power-of-two"; },
             "power-of-two: raise each scale to one, which no dtype rounds"),
         {"none", "power-of-two"})
      ->default_str("none");
  static const std::map<std::string, LinkMode> kModes = {{"auto", LinkMode::automatic},
                                                         {"reflink", LinkMode::reflink},
                                                         {"hard", LinkMode::hard},
                                                         {"copy", LinkMode::copy}};
  choice(
      command->add_option_function<std::string>(
          "--link", [&](const std::string& value) { options.link = kModes.at(value); },
          "How files of tensors come along; auto: reflink, else hard link, else copy. Other files "
          "are copied"),
      {"auto", "reflink", "hard", "copy"})
      ->default_str("auto");
  command->add_flag("--dry-run", options.dry_run, "Check everything, write nothing");
  command->add_flag("-f,--force", options.force,
                    "Replace a folder OUT that fp8kv made, in one step");
  command->add_flag("--replace", options.replace, "Leave out the scales that MODEL has");
  command->add_flag(
      "--q-scales", options.q_scales,
      "Write scales of Q too, for vLLM's attention in FP8 (--for vllm): those of FILE, "
      "or its largest Q / 448");
  add_accept_foreign(*command, options.accept_foreign);
  add_require_evidence(*command, options.require_evidence);
  auto* all = command->add_flag("--all", options.all, "Show every file, runtime and version");
  add_common(*command, options);
  all->excludes(command->get_option("--json"));
  return command;
}

void add_sampling(CLI::App& command, RunOptions& options) {
  command
      .add_option("-n,--max-new-tokens", options.max_new_tokens,
                  "Tokens to generate at most; unless given, what the model's "
                  "generation_config.json says, else 128")
      ->transform(whole_number(1))
      ->type_name("N");
  command
      .add_option("--temperature", options.temperature,
                  "0 takes the likeliest token; unless given, what the model's "
                  "generation_config.json says, else 0")
      ->check(number_between(0, 100))
      ->type_name("X");
  command
      .add_option("--top-k", options.top_k,
                  "Sample among the N likeliest, 0 for all; unless given, as the temperature")
      ->transform(whole_number(0, std::numeric_limits<int32_t>::max()))
      ->type_name("N");
  command
      .add_option("--top-p", options.top_p,
                  "Sample among the likeliest that make up X; unless given, as the temperature")
      ->check(number_above(0, 1))
      ->type_name("X");
  command.add_option("--seed", options.seed, "Seed of the sampling")
      ->transform(whole_number(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--samples-per-prompt", options.answers,
                  "Answers to each prompt, each with a seed of its own")
      ->transform(whole_number(1, kMostAnswers))
      ->type_name("N");
  command
      .add_option_function<std::vector<std::string>>(
          "--stop", [&options](const std::vector<std::string>& texts) { options.stops = texts; },
          "End an answer before this text; may be given several times")
      ->allow_extra_args(false)
      ->check(a_stop())
      ->type_name("TEXT");
  command
      .add_option("--logprobs", options.logprobs,
                  "Log-probabilities of each new token and of the K likeliest, with --json")
      ->transform(whole_number(0, kMostLogprobs))
      ->type_name("K");
}

void add_serving(CLI::App& command, RunOptions& options) {
  choice(command.add_option_function<std::string>(
             "--order",
             [&](const std::string& value) {
               options.order = value == "input" ? AnswerOrder::input : AnswerOrder::finished;
             },
             "Which answer comes first: the first prompt's, or the first that is done"),
         {"input", "finished"})
      ->default_str("input");
  command.add_option("--max-batch", options.max_batch, "Prompts that decode together at most")
      ->transform(whole_number(1, 1024))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--gpu-memory",
          [&](const std::string& value) { options.gpu_memory = *bytes_from_text(value); },
          "Memory that weights, working memory and KV cache may take together, on the CPU too, "
          "such as 80GiB; what is free on a device where it is not given")
      ->check(a_byte_size())
      ->type_name("SIZE");
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command =
      app.add_subcommand("run", "Generate text with a paged KV cache, in FP8 or 16 bit");
  set_examples(*command, {"fp8kv run Llama-3.1-8B-kv --prompt \"London is the capital of\"",
                          "fp8kv run Llama-3.1-8B --scales scales.json --prompts prompts.jsonl"});
  command
      ->add_option("model", options.model,
                   "Model folder, or org/name[@revision] of the Hugging Face cache")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  auto* text = command->add_option("text", "A prompt; - for prompts from standard input");
  text->check(a_prompt())->type_name("PROMPT");
  auto* prompt =
      add_values(*command, "-p,--prompt", "Prompts; several decode together")->type_name("TEXT...");
  auto* file =
      command
          ->add_option(
              "--prompts", options.prompt_file,
              "Prompts from a file of JSON lines; - for stdin, where each is taken up as "
              "it comes. A line has prompt, text, messages, conversations or input_ids. It "
              "may have id, max_tokens, temperature, top_k, top_p, seed, n, stop, "
              "stop_token_ids and logprobs, or continuations to score")
          ->check(a_path())
          ->type_name("FILE");
  prompt->excludes(file)->excludes(text);
  file->excludes(text);
  command->add_flag("--chat", options.as_chat,
                    "A prompt is what a user says: the chat template goes around it, and the model "
                    "answers");
  add_chat(*command, options.chat);
  command
      ->add_option("--kv-cache-dtype", options.kv_cache_dtype,
                   "What the cache holds: " + join(kv_dtype_names(), " or "))
      ->check(a_kv_dtype())
      ->capture_default_str()
      ->type_name("DTYPE");
  add_skip_layers(
      *command, options.skip_layers,
      "Layers left in the model's own dtype: numbers, and sliding_window for those with "
      "a window; those of the scale file unless given");
  auto* scales =
      command->add_option("-s,--scales", options.scales, "Scale file, or a folder that has scales")
          ->check(a_path())
          ->type_name("FILE");
  command->add_flag("--unit-scales", options.unit_scales, "An FP8 cache with every scale 1")
      ->excludes(scales);
  add_accept_foreign(*command, options.accept_foreign)->needs(scales);
  add_sampling(*command, options);
  add_serving(*command, options);
  add_strict(*command, options.strict);
  add_device(*command, options.device, options.threads);
  add_common(*command, options);
  command->get_option("--logprobs")->needs(command->get_option("--json"));
  command->final_callback([&options, prompt, text] {
    options.prompts = prompt->results();
    const std::string alone = text->count() > 0 ? text->as<std::string>() : "";
    if (alone == "-") options.prompt_file = alone;
    if (!alone.empty() && alone != "-") options.prompts = {alone};
  });
  return command;
}

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
