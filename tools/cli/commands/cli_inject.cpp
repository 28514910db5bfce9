#include "cli/commands/cli_inject.h"

#include <map>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "files/output/copy_file.h"
#include "scales/write/inject.h"

namespace fp8kv {

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

}  // namespace fp8kv
