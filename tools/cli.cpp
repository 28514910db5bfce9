#include "cli.h"

#include <CLI/CLI.hpp>

#include "backend/open.h"
#include "base/error.h"
#include "io/inject.h"
#include "kv_dtype.h"
#include "output.h"

namespace fp8kv {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 a check failed, 2 wrong usage, 3 unusable input, 4 no such device,\n"
    "5 out of memory or disk, 130 interrupted.";

// A flag that takes one of a few words; the error lists them.
CLI::Validator one_of(std::vector<std::string> allowed) {
  const std::string listed = join(allowed, ", ");
  return CLI::Validator(
      [allowed, listed](std::string& given) -> std::string {
        if (std::find(allowed.begin(), allowed.end(), given) != allowed.end()) return "";
        return cat(quote(given), " is not one of: ", listed, did_you_mean(given, allowed));
      },
      listed);
}

// Checks a number against a bound and says what was expected.
template <typename Check>
CLI::Validator number_that(Check check, const std::string& expected) {
  return CLI::Validator(
      [check, expected](std::string& given) -> std::string {
        double value = 0;
        const char* end = given.data() + given.size();
        const auto parsed = std::from_chars(given.data(), end, value);
        if (parsed.ec == std::errc() && parsed.ptr == end && check(value)) return "";
        return cat(quote(given), " is not ", expected);
      },
      expected);
}

CLI::Validator positive_integer() {
  return number_that([](double x) { return x >= 1 && x <= 1e15 && x == std::floor(x); },
                     "a positive whole number");
}

CLI::Validator whole_number() {
  return number_that([](double x) { return x >= 0 && x <= 1e15 && x == std::floor(x); },
                     "a whole number");
}

// "2/8".
std::optional<WindowShard> parse_shard(const std::string& text) {
  WindowShard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc() || index.ptr == end || *index.ptr != '/') return std::nullopt;
  const auto of = std::from_chars(index.ptr + 1, end, shard.of);
  if (of.ec != std::errc() || of.ptr != end || shard.index >= shard.of) return std::nullopt;
  return shard;
}

void add_common(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print the result as JSON");
  auto* quiet = command.add_flag_callback(
      "-q,--quiet", [&] { options.verbosity = Verbosity::quiet; }, "Only errors on stderr");
  auto* verbose = command.add_flag_callback(
      "-v,--verbose", [&] { options.verbosity = Verbosity::verbose; }, "More on stderr");
  quiet->excludes(verbose);
  command.footer(kExitCodes);
}

void add_device(CLI::App& command, std::string& device, int& threads) {
  command.add_option("--device", device, "Where to compute")
      ->check(one_of(device_names()))
      ->capture_default_str();
  command.add_option("--threads", threads, "CPU threads; one per physical core unless given")
      ->check(positive_integer());
}

CLI::App* add_calibrate(CLI::App& app, CalibrateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Run text through a model and make KV-cache scales from what K and V reach");
  command->add_option("model", options.model, "Model folder (Hugging Face layout)")
      ->required()
      ->type_name("MODEL");
  command->add_option("--data,-d", options.data, "Calibration text: .txt, .json, .jsonl, or -")
      ->required()
      ->type_name("FILE...");
  command->add_option("--out,-o", options.out, "Scale file to write; - for stdout")
      ->capture_default_str()
      ->type_name("FILE");
  auto* samples = command
                      ->add_option("--samples", options.samples,
                                   "Windows of text to run; when given, fewer is an error")
                      ->check(positive_integer())
                      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--shard", [&](const std::string& value) { options.shard = *parse_shard(value); },
          "Run only every N-th window, from the I-th on, counted from 0; 'fp8kv merge' makes one "
          "file\nof all N")
      ->check(CLI::Validator(
          [](std::string& given) -> std::string {
            if (parse_shard(given)) return "";
            return cat(quote(given), " is not I/N with I less than N, such as 0/4 to 3/4");
          },
          "I/N"))
      ->type_name("");
  auto* seq_len = command->add_option("--seq-len", options.seq_len, "Tokens in a window at most")
                      ->check(positive_integer())
                      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--granularity",
          [&](const std::string& value) {
            options.policy.granularity = value == "head" ? Granularity::head : Granularity::tensor;
          },
          "One scale per layer's K and V, or one per KV head [tensor]")
      ->check(one_of({"tensor", "head"}));
  command
      ->add_option("--headroom", options.policy.headroom,
                   "Multiplies every scale: room above the largest value seen, at no cost in\n"
                   "precision up to 64. 1 is amax / 448, what other tools compute")
      ->check(number_that([](double x) { return x >= 1 && x <= 1024; }, "between 1 and 1024"))
      ->capture_default_str();
  command
      ->add_option("--histograms", options.histograms,
                   "Also write the magnitude histograms (safetensors)")
      ->type_name("FILE");
  add_device(*command, options.device, options.threads);
  command->add_flag("--force", options.force, "Replace existing output files");
  add_common(*command, options);
  command->final_callback([&options, samples, seq_len] {
    options.samples_given = samples->count() > 0;
    options.seq_len_given = seq_len->count() > 0;
  });
  return command;
}

CLI::App* add_inject(CLI::App& app, InjectCommandOptions& options) {
  CLI::App* command = app.add_subcommand(
      "inject", "Make a new model folder that is an old one plus scales; weights are linked");
  command->add_option("model", options.model, "Model folder; never modified")
      ->required()
      ->type_name("MODEL");
  command->add_option("--scales,-s", options.scales, "Scale file, or a folder that has scales")
      ->required()
      ->type_name("FILE");
  command->add_option("--out,-o", options.out, "Folder to make")->required()->type_name("OUT");
  std::vector<std::string> targets;
  for (const InjectTarget& target : inject_targets()) targets.push_back(target.name);
  command->add_option("--for", options.target, "The runtime to write for")
      ->check(one_of(targets))
      ->capture_default_str();
  static const std::map<std::string, LinkMode> kModes = {{"auto", LinkMode::automatic},
                                                         {"reflink", LinkMode::reflink},
                                                         {"hard", LinkMode::hard},
                                                         {"copy", LinkMode::copy}};
  command
      ->add_option_function<std::string>(
          "--link", [&](const std::string& value) { options.link = kModes.at(value); },
          "How unchanged files come along [auto]: reflink, else hard link, else copy")
      ->check(one_of({"auto", "reflink", "hard", "copy"}));
  command->add_flag("--dry-run", options.dry_run, "Check everything, write nothing");
  command->add_flag("--force", options.force, "Replace an existing OUT, in one step");
  add_common(*command, options);
  return command;
}

CLI::App* add_extract(CLI::App& app, ExtractOptions& options) {
  CLI::App* command =
      app.add_subcommand("extract", "Read the scales that a model folder or scale file carries");
  command->add_option("checkpoint", options.source, "Model folder or scale file")
      ->required()
      ->type_name("CHECKPOINT");
  command->add_option("--out,-o", options.out, "Scale file to write; - for stdout")
      ->capture_default_str()
      ->type_name("FILE");
  command->add_flag("--force", options.force, "Replace an existing file");
  add_common(*command, options);
  return command;
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command =
      app.add_subcommand("run", "Generate text with a paged KV cache, in FP8 or 16 bit");
  command->add_option("model", options.model, "Model folder")->required()->type_name("MODEL");
  auto* stdin_mark = command->add_option_function<std::string>(
      "input", [&](const std::string& value) { options.prompt_file = value; },
      "- reads prompts from standard input, as --prompts does");
  stdin_mark->check(one_of({"-"}))->type_name("-");
  auto* prompt =
      command->add_option("--prompt,-p", options.prompts, "Prompts; they decode together")
          ->type_name("TEXT...");
  auto* file = command
                   ->add_option("--prompts", options.prompt_file,
                                "Prompts from a file: JSON lines with \"prompt\"; - for stdin")
                   ->type_name("FILE");
  prompt->excludes(file)->excludes(stdin_mark);
  file->excludes(stdin_mark);
  command
      ->add_option("--kv-cache-dtype", options.kv_cache_dtype,
                   "What the cache holds: " + join(kv_dtype_names(), ", "))
      ->capture_default_str()
      ->type_name("DTYPE");
  auto* scales =
      command->add_option("--scales,-s", options.scales, "Scale file, or a folder that has scales")
          ->type_name("FILE");
  command->add_flag("--unit-scales", options.unit_scales, "An FP8 cache with every scale 1")
      ->excludes(scales);
  command->add_option("--max-new-tokens,-n", options.max_new_tokens, "Tokens to generate at most")
      ->check(positive_integer())
      ->capture_default_str();
  command->add_option("--temperature", options.temperature, "0 takes the likeliest token")
      ->check(number_that([](double x) { return x >= 0 && x <= 100; }, "between 0 and 100"))
      ->capture_default_str();
  command->add_option("--top-k", options.top_k, "Sample among the k likeliest; 0: all")
      ->check(whole_number())
      ->capture_default_str();
  command->add_option("--top-p", options.top_p, "Sample among the likeliest that make up p")
      ->check(number_that([](double x) { return x > 0 && x <= 1; }, "above 0 and at most 1"))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of the sampling")
      ->check(whole_number())
      ->capture_default_str();
  add_device(*command, options.device, options.threads);
  add_common(*command, options);
  return command;
}

CLI::App* add_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Say what a model folder, safetensors file or scale file is and carries");
  command->add_option("path", options.path, "Model folder, .safetensors or scale file")
      ->required()
      ->type_name("PATH");
  command->add_flag("--certificate", options.certificate,
                    "Say only whether the scales are safe, and which layers need them");
  add_common(*command, options);
  return command;
}

CLI::App* add_merge(CLI::App& app, MergeOptions& options) {
  CLI::App* command = app.add_subcommand(
      "merge", "Make one scale file of several calibrations of a model, as if run at once");
  command->add_option("parts", options.parts, "Scale files of 'fp8kv calibrate'")
      ->required()
      ->type_name("FILE...");
  command->add_option("--out,-o", options.out, "Scale file to write; - for stdout")
      ->required()
      ->type_name("FILE");
  command->add_flag("--force", options.force, "Replace an existing file");
  add_common(*command, options);
  return command;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// CLI11's own words for what is wrong, with what it leaves out: suggestions and the way out.
[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string help =
      chosen.empty() ? "fp8kv --help" : cat("fp8kv ", chosen[0]->get_name(), " --help");
  const std::string prefix = chosen.empty() ? "" : chosen[0]->get_name() + ": ";
  std::string message = error.what();
  const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error);
  if (chosen.empty() && app.remaining_size() > 0) {
    const std::string given = app.remaining()[0];
    const std::vector<std::string> known =
        given.starts_with("-") ? flag_names(app) : subcommand_names(app);
    message =
        cat(quote(given), given.starts_with("-") ? " is not a flag here" : " is not a command",
            did_you_mean(given, known), "; commands are: ", join(subcommand_names(app)));
  } else if (extras && !chosen.empty()) {
    const std::string given = app.remaining(true)[0];
    message =
        cat(quote(given), " is not expected here", did_you_mean(given, flag_names(*chosen[0])));
  }
  throw Error(prefix + message, "see " + help, ErrorKind::usage);
}

}  // namespace

std::optional<ParsedCommand> parse_command_line(int argc, char** argv) {
  CLI::App app{"FP8 KV-cache scales for LLM checkpoints: make them, move them, run with them.",
               "fp8kv"};
  app.set_version_flag("--version", std::string("fp8kv ") + FP8KV_VERSION);
  app.require_subcommand(1);
  app.footer(kExitCodes);
  CalibrateOptions calibrate;
  InjectCommandOptions inject;
  ExtractOptions extract;
  RunOptions run;
  InspectOptions inspect;
  MergeOptions merge;
  CLI::App* calibrate_command = add_calibrate(app, calibrate);
  CLI::App* inject_command = add_inject(app, inject);
  CLI::App* extract_command = add_extract(app, extract);
  CLI::App* run_command = add_run(app, run);
  CLI::App* inspect_command = add_inspect(app, inspect);
  CLI::App* merge_command = add_merge(app, merge);
  if (argc <= 1) {
    print(app.help());
    throw Error("no command given", "see fp8kv --help", ErrorKind::usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    fail_usage(app, error);
  }
  if (*calibrate_command) return ParsedCommand{"calibrate", calibrate};
  if (*inject_command) return ParsedCommand{"inject", inject};
  if (*extract_command) return ParsedCommand{"extract", extract};
  if (*run_command) return ParsedCommand{"run", run};
  if (*inspect_command) return ParsedCommand{"inspect", inspect};
  FP8KV_ASSERT(*merge_command);
  return ParsedCommand{"merge", merge};
}

}  // namespace fp8kv
