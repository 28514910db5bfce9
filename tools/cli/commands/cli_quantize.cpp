#include "cli/commands/cli_quantize.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/text.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "options/byte_size.h"
#include "quantize/schemes.h"

namespace fp8kv {
namespace {

// "'fp8-dynamic': a scale for each row, .... 'fp8-block': ...".
std::string scheme_list() {
  std::string rows;
  for (const Fp8Scheme& scheme : fp8_schemes()) {
    rows += cat(rows.empty() ? "" : ". ", "'", scheme.name, "': ", scheme.summary);
  }
  return rows;
}

// Flags for KV scales in the same folder: from a file, or from a calibration.
struct ScaleFlags {
  CLI::Option* data;
  CLI::Option* policy;
};

ScaleFlags add_scales(CLI::App& command, QuantizeOptions& options) {
  auto* scales =
      command
          .add_option("-s,--scales", options.scales,
                      "KV scales to put into OUT too: a scale file, or a folder that has "
                      "scales")
          ->check(a_path())
          ->type_name("FILE");
  add_accept_foreign(command, options.accept_foreign)->needs(scales);
  ScaleFlags flags{};
  flags.data = add_values(command, "-d,--data",
                          "Calibrate on this text, and put KV scales into OUT too. " + data_text())
                   ->check(a_path())
                   ->type_name("FILE...");
  flags.data->excludes(scales);
  const size_t before = command.get_options().size();
  add_data_choice(command, options.choice);
  add_shuffle(command, options.choice);
  add_chat(command, options.chat);
  add_windows(command, options.windows, 1);
  flags.policy = add_policy(command, "How to make KV scales of --data")->default_str("amax");
  command
      .add_option_function<std::string>(
          "--max-memory",
          [&](const std::string& value) { options.max_memory = bytes_from_text(value); },
          "Device memory that the calibration may use at most")
      ->check(a_byte_size())
      ->type_name("SIZE");
  // Flags of the calibration need --data, because without it nothing is calibrated.
  const std::vector<CLI::Option*> all = command.get_options();
  for (size_t i = before; i < all.size(); ++i) all[i]->needs(flags.data);
  return flags;
}

}  // namespace

CLI::App* add_quantize(CLI::App& app, QuantizeOptions& options) {
  CLI::App* command = app.add_subcommand(
      "quantize",
      "Make a model folder with FP8 weights of one in 16 bit, with KV scales if wanted");
  set_examples(*command, {"fp8kv quantize Llama-3.1-8B -o Llama-3.1-8B-FP8",
                          "fp8kv quantize Qwen2.5-7B --data articles.jsonl -o Qwen2.5-7B-FP8-kv"});
  command->add_option("model", options.model, "Model folder or org/name[@revision]; never modified")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  command->add_option("-o,--out", options.out, "Folder to make")
      ->required()
      ->check(a_path())
      ->type_name("OUT");
  std::vector<std::string> schemes;
  for (const Fp8Scheme& scheme : fp8_schemes()) schemes.push_back(scheme.name);
  choice(command->add_option("--scheme", options.scheme,
                             "Which weights share a scale. " + scheme_list()),
         schemes)
      ->capture_default_str();
  const ScaleFlags flags = add_scales(*command, options);
  command->add_flag("--resume", options.resume,
                    "Keep finished shards in OUT.partial, and go on from there");
  command->add_flag("--dry-run", options.dry_run, "Check everything, write nothing");
  command->add_flag("-f,--force", options.force,
                    "Replace a folder OUT that fp8kv made, in one step");
  add_device(*command, options.device, options.threads);
  add_strict(*command, options.strict);
  add_common(*command, options);
  command->final_callback([&options, flags] {
    options.policy = given_policy(*flags.policy).value_or(amax_policy(ScaleSharing::tensor, 1));
    options.data.assign(flags.data->results().begin(), flags.data->results().end());
  });
  return command;
}

}  // namespace fp8kv
