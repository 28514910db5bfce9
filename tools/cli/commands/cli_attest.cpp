#include "cli/commands/cli_attest.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"

namespace fp8kv {
namespace {

void add_server(CLI::App& command, AttestCommandOptions& options) {
  choice(command.add_option("--api", options.api,
                            "What the server speaks; unless given, what its answers tell"),
         {"vllm", "sglang", "tgi"});
  command
      .add_option("--served-model-name", options.served_model,
                  "The model's name there; unless given, the first of /v1/models")
      ->type_name("NAME");
  command
      .add_option("--api-key-env", options.api_key_env,
                  "The environment variable that holds the server's API key")
      ->type_name("NAME");
  command
      .add_option("--timeout", options.timeout_s,
                  "Seconds without a byte of an answer after which the server has failed")
      ->transform(whole_number(1, 86400))
      ->capture_default_str()
      ->type_name("S");
}

}  // namespace

CLI::App* add_attest(CLI::App& app, AttestCommandOptions& options) {
  CLI::App* command = app.add_subcommand(
      "attest", "Find out which scales a running server computes with, by its own numbers");
  set_examples(*command,
               {"fp8kv attest http://gpu7:8000 -m Llama-3.1-8B-kv -d articles.jsonl",
                "fp8kv attest http://gpu7:8000 -m model -s scales.json -d a.txt --decode 64"});
  command->add_option("url", options.url, "The server's address, such as http://127.0.0.1:8000")
      ->required()
      ->type_name("URL");
  command
      ->add_option("-m,--model", options.model,
                   "Model folder that is served there, or org/name[@revision] of the Hugging Face "
                   "cache")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  auto* data = add_data(*command);
  command
      ->add_option("-s,--scales", options.scales,
                   "The scales that are expected: a scale file, or a folder that has scales; those "
                   "of MODEL unless given")
      ->check(a_path())
      ->type_name("FILE");
  add_accept_foreign(*command, options.accept_foreign);
  add_server(*command, options);
  command
      ->add_option("--decode", options.decode,
                   "Tokens that the server generates after each window, of which alone is judged; "
                   "0: the windows themselves, as prompts")
      ->transform(whole_number(0, 1 << 16))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--level", options.level,
                   "Probability of a wrong answer that is accepted: a smaller one takes more text")
      ->check(number_above(0, 0.5))
      ->capture_default_str()
      ->type_name("X");
  add_data_choice(*command, options.choice);
  add_shuffle(*command, options.choice);
  add_chat(*command, options.chat);
  add_windows(*command, options.windows, 8);
  add_strict(*command, options.strict);
  add_device(*command, options.device, options.threads);
  add_common(*command, options);
  command->final_callback(
      [&options, data] { options.data.assign(data->results().begin(), data->results().end()); });
  return command;
}

}  // namespace fp8kv
