#include "cli/commands/cli_tokenize.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"

namespace fp8kv {

CLI::App* add_tokenize(CLI::App& app, TokenizeOptions& options) {
  CLI::App* command = app.add_subcommand(
      "tokenize", "Show what a model sees of a text, of records or of conversations");
  set_examples(*command, {"fp8kv tokenize Llama-3.1-8B chats.jsonl",
                          "echo 'Where is London?' | fp8kv tokenize Llama-3.1-8B --chat",
                          "echo 'Where is London?' | fp8kv tokenize hf://org/Llama-3.1-8B"});
  command
      ->add_option(
          "model", options.model,
          "Model folder or address (hf://org/name), of which the tokenizer's files will do")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  command->add_option("input", options.input, data_text())
      ->check(a_path())
      ->default_str("-")
      ->type_name("FILE");
  command->add_flag("--chat", options.as_chat,
                    "A text is what a user says, and conversations end where the model would "
                    "answer");
  add_data_choice(*command, options.choice);
  add_chat(*command, options.chat);
  command->add_option("--seq-len", options.seq_len, "Tokens in a window at most")
      ->transform(whole_number(1))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--records", options.records, "Records to show at most; 0 for all")
      ->transform(whole_number(0))
      ->capture_default_str()
      ->type_name("N");
  add_no_cache(*command, options.no_cache);
  add_common(*command, options);
  return command;
}

}  // namespace fp8kv
