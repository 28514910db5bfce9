#include "cli/commands/cli_extract.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/text.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "scales/dialects.h"

namespace fp8kv {
namespace {

// The names of scales that are read, each once.
std::string forms_read() {
  std::vector<std::string> forms;
  for (const Dialect& row : dialects()) {
    for (const std::string& form : tensor_forms(row)) {
      if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    }
  }
  std::string text = "\nForms that are read (what follows the layer's number in a name):\n";
  for (const std::string& form : forms) text += cat("  ", form, "\n");
  return text + "The attention may also be called mixer, attention, attn or self_attention.\n";
}

}  // namespace

CLI::App* add_extract(CLI::App& app, ExtractOptions& options) {
  CLI::App* command =
      app.add_subcommand("extract", "Read the scales that a model folder or scale file carries");
  set_examples(*command,
               {"fp8kv extract Llama-3.1-8B-kv -o scales.json",
                "fp8kv extract hf://org/Llama-3.1-8B-kv@main -o scales.json",
                "fp8kv extract --list Qwen3-8B-FP8",
                "fp8kv extract Llama-3.1-8B-kv --to vllm-json --tp 2 -o kv_cache_scales.json"});
  command->footer(command->get_footer() + forms_read());
  command
      ->add_option(
          "checkpoint", options.source,
          "Model folder or address (hf://org/name), TensorRT-LLM or AMMO folder, or scale file")
      ->required()
      ->check(a_path())
      ->type_name("CHECKPOINT");
  auto* out = command->add_option("-o,--out", options.out, "Scale file to write; - for stdout")
                  ->check(a_path())
                  ->default_str(options.out.string())
                  ->type_name("FILE");
  auto* form = choice(command->add_option_function<std::string>(
                          "--to",
                          [&](const std::string& value) {
                            options.form =
                                value == "vllm-json" ? ExtractForm::vllm_json : ExtractForm::fp8kv;
                          },
                          "What to write: a scale file with all that is known, or vLLM's schema "
                          "alone"),
                      {"fp8kv", "vllm-json"})
                   ->default_str("fp8kv");
  auto* tp =
      command->add_option("--tp", options.tp, "With vllm-json: the tensor-parallel ranks it is for")
          ->transform(whole_number(1, 4096))
          ->capture_default_str()
          ->type_name("N");
  auto* list =
      command
          ->add_flag("--list", options.list,
                     "Print every scale tensor with its dialect, dtype, shape and value instead")
          ->excludes(out)
          ->excludes(form)
          ->excludes(tp);
  command->add_flag("-f,--force", options.force, "Replace an existing file")->excludes(list);
  add_no_cache(*command, options.no_cache);
  add_common(*command, options);
  return command;
}

}  // namespace fp8kv
