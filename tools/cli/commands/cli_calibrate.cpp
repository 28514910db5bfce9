#include "cli/commands/cli_calibrate.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "options/byte_size.h"

namespace fp8kv {
namespace {

// The flags that choose a policy: --policy, and older spellings of two policies.
struct PolicyFlags {
  CLI::Option* policy;
  CLI::Option* granularity;
  CLI::Option* headroom;
};

PolicyFlags add_policies(CLI::App& command) {
  PolicyFlags flags{};
  flags.policy =
      add_policy(command, "How to make scales; what 'fp8kv eval' compares")->default_str("amax");
  flags.granularity =
      choice(command.add_option("--granularity",
                                "One scale for a layer's K and one for its V, or one per KV head: "
                                "the policies amax and head"),
             {"tensor", "head"})
          ->default_str("tensor");
  flags.headroom =
      command
          .add_option("--headroom",
                      "Multiplies every scale, as F of a policy does: room above the largest value "
                      "seen. A power of two up to 64 costs no precision. 1 is amax / 448, what "
                      "other tools compute")
          ->check(number_between(1, 1024))
          ->default_str("1")
          ->type_name("X");
  return flags;
}

[[noreturn]] void fail_contradiction(const Policy& policy, const CLI::Option& flag) {
  throw Error(cat("calibrate: --policy ", policy.text, " and ", flag.get_name(), " ",
                  flag.as<std::string>(), " contradict each other"),
              cat("leave out ", flag.get_name()), ErrorKind::usage);
}

// The policy that the flags ask for together.
Policy chosen_policy(const PolicyFlags& flags) {
  const std::optional<Policy> policy = given_policy(*flags.policy);
  const bool headroom_given = flags.headroom->count() > 0;
  const bool granularity_given = flags.granularity->count() > 0;
  const double headroom = headroom_given ? flags.headroom->as<double>() : 1;
  const bool per_head = granularity_given && flags.granularity->as<std::string>() == "head";
  if (!policy) return amax_policy(per_head ? ScaleSharing::head : ScaleSharing::tensor, headroom);
  if (granularity_given && per_head != (policy->kind->sharing == ScaleSharing::head)) {
    fail_contradiction(*policy, *flags.granularity);
  }
  if (headroom_given && headroom != policy->headroom()) {
    fail_contradiction(*policy, *flags.headroom);
  }
  return *policy;
}

// Refuses --samples auto with --shard or --shuffle: it takes the first windows of a single run.
void check_auto(const CalibrateOptions& options) {
  if (!options.windows.until_settled) return;
  const char* other = options.shard.of > 1 ? "--shard" : options.choice.shuffle ? "--shuffle" : "";
  if (*other == 0) return;
  throw Error(cat("calibrate: --samples auto and ", other, " cannot be given together"),
              "pass a number of windows, such as --samples 512", ErrorKind::usage);
}

// Refuses flags that a drafter's calibration has no use for.
void check_drafter(const CalibrateOptions& options) {
  if (options.target.empty()) return;
  if (options.resume) {
    throw Error("calibrate: --target and --resume cannot be given together",
                "leave out --resume: a drafter is measured in one go", ErrorKind::usage);
  }
  if (options.policy.kind->needs == PolicyNeeds::losses) {
    throw Error(cat("calibrate: --policy ", options.policy.text,
                    " measures losses, which drafters have none of here"),
                "choose another policy, such as amax", ErrorKind::usage);
  }
}

// The flags that say which cache the scales are for.
void add_cache(CLI::App& command, CalibrateOptions& options) {
  choice(command.add_option("--kv-cache-dtype", options.kv_cache_dtype,
                            "The cache that the scales are made for"),
         {"fp8", "fp8_e4m3", "nvfp4", "nvfp4_4over6"})
      ->transform(a_dtype_with_scales())
      ->capture_default_str();
  add_skip_layers(
      command, options.skip_layers,
      "Layers that will be served in the model's own dtype: numbers, and sliding_window "
      "for those with a window. The scale file records them");
}

// Flags for runs that are too large for one go on one machine.
void add_large_runs(CLI::App& command, CalibrateOptions& options) {
  command
      .add_option_function<std::string>(
          "--shard", [&](const std::string& value) { options.shard = *shard_from_text(value); },
          "Run only window I of every N, I from 0 to N-1; 'fp8kv merge' makes one file of all N")
      ->check(a_shard())
      ->type_name("I/N");
  command
      .add_option_function<std::string>(
          "--max-memory",
          [&](const std::string& value) { options.max_memory = bytes_from_text(value); },
          "Device memory to use at most; what does not fit stays on the host. Same scales")
      ->check(a_byte_size())
      ->type_name("SIZE");
  command.add_flag("--resume", options.resume,
                   "Keep the state after each layer in OUT.partial, and go on from it. Takes "
                   "tokens x hidden size x 2 bytes on disk (on the CPU 4), written once a layer");
}

}  // namespace

CLI::App* add_calibrate(CLI::App& app, CalibrateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Run text through a model and make scales from what K and V reach");
  set_examples(*command,
               {"fp8kv calibrate Llama-3.1-8B --data articles.jsonl -o scales.json",
                "fp8kv calibrate Qwen2.5-7B --data a.txt b.txt --samples 128 --policy head*2",
                "fp8kv calibrate EAGLE3-Llama --target Llama-3.1-8B --data chats.jsonl"});
  command
      ->add_option("model", options.model,
                   "Model folder, or org/name[@revision] of the Hugging Face cache")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  command
      ->add_option("--target", options.target,
                   "The model that MODEL drafts for, where MODEL is an EAGLE-3 drafter: its hidden "
                   "states are what the drafter reads")
      ->check(a_path())
      ->type_name("MODEL");
  auto* data = add_data(*command);
  command->add_option("-o,--out", options.out, "Scale file to write; - for stdout")
      ->check(a_path())
      ->default_str(options.out.string())
      ->type_name("FILE");
  add_data_choice(*command, options.choice);
  add_shuffle(*command, options.choice);
  add_chat(*command, options.chat);
  add_windows_or_auto(*command, options.windows);
  const PolicyFlags policy = add_policies(*command);
  add_cache(*command, options);
  command
      ->add_option("--histograms", options.histograms,
                   "Also write the magnitude histograms (safetensors)")
      ->check(a_path())
      ->type_name("FILE");
  add_report(*command, options.report, "the certificate");
  add_large_runs(*command, options);
  add_device(*command, options.device, options.threads);
  add_strict(*command, options.strict);
  add_require_evidence(*command, options.require_evidence);
  auto* table = add_layer_table(*command, options.table);
  auto* plot =
      command->add_flag("--plot", options.plot, "Also draw the ranges of the layers as text");
  command->add_flag("-f,--force", options.force, "Replace existing output files");
  add_common(*command, options);
  for (CLI::Option* flag : {table, plot}) flag->excludes(command->get_option("--json"));
  command->final_callback([&options, data, policy] {
    options.policy = chosen_policy(policy);
    const bool nvfp4 = options.kv_cache_dtype.starts_with("nvfp4");
    options.format = nvfp4 ? KvFormat::nvfp4 : KvFormat::e4m3fn;
    check_auto(options);
    check_drafter(options);
    options.data.assign(data->results().begin(), data->results().end());
  });
  return command;
}

}  // namespace fp8kv
