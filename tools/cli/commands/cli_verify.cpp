#include "cli/commands/cli_verify.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "options/kv_dtype.h"
#include "scales/rules/serving.h"

namespace fp8kv {

CLI::App* add_verify(CLI::App& app, VerifyOptions& options) {
  CLI::App* command = app.add_subcommand(
      "verify",
      "Say what each runtime does with the scales of a folder, and fail where they are lost");
  set_examples(*command,
               {"fp8kv verify Llama-3.1-8B-kv", "fp8kv verify Qwen3-8B-FP8 --runtime vllm@0.33",
                "fp8kv verify Qwen3-8B-FP8 --runtime all --json"});
  command->add_option("path", options.path, "Model folder or scale file")
      ->required()
      ->check(a_path())
      ->type_name("PATH");
  command
      ->add_option("--runtime", options.runtimes,
                   "The runtime that must load the scales: NAME for its newest versions, "
                   "NAME@VERSION, NAME@all, or all; may be given again")
      ->allow_extra_args(false)
      ->type_name("RUNTIME");
  command
      ->add_option("--kv-cache-dtype", options.kv_cache_dtype,
                   "The flag that it will be served with: auto, fp8, fp8_e5m2, nvfp4, or another "
                   "name of vLLM; unless given, what each runtime calls the cache that the scales "
                   "are for")
      ->check(a_plan_dtype())
      ->type_name("DTYPE");
  auto* all = command->add_flag("--all", options.all, "Show every runtime and version");
  auto* evidence = add_require_evidence(*command, options.require_evidence);
  std::vector<std::string> gpus;
  for (const Gpu& gpu : known_gpus()) gpus.push_back(gpu.name);
  auto* gpu =
      choice(command->add_option("--gpu", options.gpu, "The GPU that it will run on"), gpus);
  auto* junit =
      command->add_option("--junit", options.junit, "Also write the outcome of every runtime (XML)")
          ->check(a_path())
          ->type_name("FILE");
  auto* summary = add_summary(*command, options.summary);
  command->add_flag("-f,--force", options.force, "Replace an existing output file");
  command
      ->add_option("--with", options.with,
                   "Run the vLLM, SGLang or transformers of this Python, and compare the scales in "
                   "its memory with those of the files")
      ->excludes(gpu)
      ->excludes(junit)
      ->excludes(summary)
      ->excludes(all)
      ->excludes(evidence)
      ->type_name("PYTHON");
  command->add_option("--timeout", options.timeout_s, "With --with: the longest that it may take")
      ->check(number_above(0, 86400))
      ->capture_default_str()
      ->type_name("SECONDS");
  add_no_cache(*command, options.no_cache);
  add_common(*command, options);
  all->excludes(command->get_option("--json"));
  return command;
}

}  // namespace fp8kv
