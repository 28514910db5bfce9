#include "cli/commands/cli_equalize.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/text.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "equalize/equalized_caches.h"

namespace fp8kv {
namespace {

// "int8|nvfp4".
std::string short_names() {
  std::string names;
  for (const EqualizedCache& each : equalized_caches()) {
    names += cat(names.empty() ? "" : "|", each.name);
  }
  return names;
}

// "int8_per_token_head, nvfp4".
std::string full_names() {
  std::string names;
  for (const EqualizedCache& each : equalized_caches()) {
    names += cat(names.empty() ? "" : ", ", each.full);
  }
  return names;
}

}  // namespace

CLI::App* add_equalize(CLI::App& app, EqualizeOptions& options) {
  CLI::App* command = app.add_subcommand(
      "equalize", "Make the same model, bit for bit, whose INT8 or NVFP4 K cache loses less");
  set_examples(*command,
               {"fp8kv equalize Qwen2.5-7B --data articles.jsonl --for int8 -o Qwen2.5-7B-eq"});
  command->add_option("model", options.model, "Model folder or org/name[@revision]; never modified")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  auto* data = add_values(*command, "-d,--data", "Text to search exponents on. " + data_text())
                   ->required()
                   ->check(a_path())
                   ->type_name("FILE...");
  command
      ->add_option_function<std::string>(
          "--for",
          [&](const std::string& name) {
            options.cache = with_context("--for", [&] { return equalized_cache_at(name).name; });
          },
          "The cache that K will be in, also by vLLM's name: " + full_names())
      ->required()
      ->type_name(short_names());
  command->add_option("-o,--out", options.out, "Folder to make")
      ->required()
      ->check(a_path())
      ->type_name("OUT");
  auto* held_out = add_values(*command, "--held-out",
                              "Text to prove and measure on, instead of the last quarter of --data")
                       ->check(a_path())
                       ->type_name("FILE...");
  add_data_choice(*command, options.choice);
  add_shuffle(*command, options.choice);
  add_chat(*command, options.chat);
  add_windows(*command, options.windows, 2);
  command->add_flag("--resume", options.resume,
                    "Keep the exponents of searched layers in OUT.partial, and go on from there");
  command->add_flag("--dry-run", options.dry_run, "Search and report, write nothing");
  command->add_flag("-f,--force", options.force,
                    "Replace a folder OUT that fp8kv made, in one step");
  add_device(*command, options.device, options.threads);
  add_strict(*command, options.strict);
  add_common(*command, options);
  command->final_callback([&options, data, held_out] {
    options.data.assign(data->results().begin(), data->results().end());
    options.held_out.assign(held_out->results().begin(), held_out->results().end());
  });
  return command;
}

}  // namespace fp8kv
