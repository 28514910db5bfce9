#include "cli/commands/cli_fit.h"

#include <limits>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/text.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "options/byte_size.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

// The flags of the budget: --max-kld, or a size in one of two forms.
void add_budget(CLI::App& command, FitCommandOptions& options) {
  command
      .add_option_function<double>(
          "--max-kld", [&](double value) { options.max_kld = value; },
          "The loss to stay below: mean KL divergence from the 16-bit cache, in nats a token")
      ->check(number_above(0, 100))
      ->type_name("NATS");
  command
      .add_option_function<uint64_t>(
          "--bytes-per-token", [&](uint64_t value) { options.bytes_per_token = value; },
          "The bytes that K and V of one token may take, all layers together")
      ->check(whole_number(1))
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--memory", [&](const std::string& value) { options.memory = *bytes_from_text(value); },
          "Memory of each GPU that has to hold the weights and --batch sequences of --context")
      ->check(a_byte_size())
      ->type_name("SIZE");
  command.add_option("--context", options.context, "Tokens in a sequence; the model's context")
      ->transform(whole_number(1, std::numeric_limits<int32_t>::max()))
      ->type_name("N");
  command.add_option("--batch", options.batch, "Sequences that have to fit into --memory")
      ->transform(whole_number(1, 1 << 24))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--tp", options.tp, "GPUs that share the model (tensor parallel)")
      ->transform(whole_number(1, 1 << 16))
      ->capture_default_str()
      ->type_name("N");
}

std::string canonical_dtype(const std::string& name) {
  const std::optional<CacheType> type = kv_dtype_from_name(name);
  if (type && !is_compute_dtype(*type)) return kv_dtype_name(*type);
  throw Error(cat("--kv-cache-dtype ", name, ": is a 16-bit cache"),
              "name the caches that may take fewer bits", ErrorKind::usage);
}

void check_budget(const FitCommandOptions& options) {
  const int given =
      (options.max_kld ? 1 : 0) + (options.bytes_per_token ? 1 : 0) + (options.memory > 0 ? 1 : 0);
  if (options.memory == 0 && (options.batch != 1 || options.tp != 1)) {
    throw Error("fit: --batch and --tp are for --memory, which is not given",
                "give --memory, or leave them out", ErrorKind::usage);
  }
  if (options.bytes_per_token && options.context > 0) {
    throw Error("fit: --context is for --memory and --max-kld, and --bytes-per-token is given",
                "leave it out", ErrorKind::usage);
  }
  if (options.resume && options.out.empty()) {
    throw Error("fit: --resume keeps measurements beside --out, which is not given",
                "give --out, or leave it out", ErrorKind::usage);
  }
  if (given == 1) return;
  throw Error(given == 0 ? "fit: needs a budget: --max-kld, --bytes-per-token or --memory"
                         : "fit: takes one budget, and more than one is given",
              "pass --max-kld 0.01, for example", ErrorKind::usage);
}

}  // namespace

CLI::App* add_fit(CLI::App& app, FitCommandOptions& options) {
  CLI::App* command = app.add_subcommand(
      "fit", "Find the smallest cache that is still good: its format, and layers left in 16 bit");
  set_examples(*command,
               {"fp8kv fit Qwen2.5-7B --data articles.jsonl --max-kld 0.01 -o scales.json",
                "fp8kv fit Qwen2.5-7B --data a.txt --memory 24GiB --context 32768 --batch 8"});
  command
      ->add_option("model", options.model,
                   "Model folder, or org/name[@revision] of the Hugging Face cache")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  auto* data = add_data(*command);
  add_budget(*command, options);
  command->add_option("--for", options.runtime, "The runtime that will serve, such as vllm@0.33")
      ->capture_default_str()
      ->type_name("RUNTIME");
  add_list(*command, "--kv-cache-dtype", options.kv_cache_dtypes, canonical_dtype,
           "The caches to choose from; by default those of fp8, int8_per_token_head and nvfp4 "
           "that the runtime takes and the model can have")
      ->allow_extra_args(true)
      ->type_name("DTYPE,...");
  auto* held_out = add_values(*command, "--held-out",
                              "Text to confirm choices on, instead of the second half of --data")
                       ->check(a_path())
                       ->type_name("FILE...");
  command->add_option("--scales", options.scales, "Use the scales of a file or checkpoint")
      ->check(a_path())
      ->type_name("PATH");
  add_accept_foreign(*command, options.accept_foreign);
  auto* policy = add_policy(*command, "How scales are made, on the text that choices are made on");
  command
      ->add_option("-o,--out", options.out,
                   "Write the scales of the chosen cache, with the layers left in 16 bit")
      ->check(a_path())
      ->type_name("FILE");
  add_report(*command, options.report, "the frontier");
  add_data_choice(*command, options.choice);
  add_shuffle(*command, options.choice);
  add_chat(*command, options.chat);
  add_windows(*command, options.windows, 2);
  add_device(*command, options.device, options.threads);
  add_strict(*command, options.strict);
  command->add_flag("--resume", options.resume,
                    "Keep measurements in OUT.partial, and go on from there");
  command->add_flag("-f,--force", options.force, "Replace existing output files");
  add_common(*command, options);
  command->final_callback([&options, data, held_out, policy] {
    check_budget(options);
    const std::optional<Policy> given = given_policy(*policy);
    options.policy_given = given.has_value();
    if (given) options.policy = *given;
    options.data.assign(data->results().begin(), data->results().end());
    options.held_out.assign(held_out->results().begin(), held_out->results().end());
  });
  return command;
}

}  // namespace fp8kv
