#include "cli/commands/cli_run.h"

#include <limits>

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "cli/flags/cli_checks.h"
#include "cli/flags/cli_flags.h"
#include "options/byte_size.h"
#include "options/kv_dtype.h"

namespace fp8kv {
namespace {

// The flags that say what the cache holds, and where its scales come from.
void add_cache(CLI::App& command, RunOptions& options) {
  command
      .add_option("--kv-cache-dtype", options.kv_cache_dtype,
                  "What the cache holds: " + join(kv_dtype_names(), " or "))
      ->check(a_kv_dtype())
      ->capture_default_str()
      ->type_name("DTYPE");
  add_skip_layers(
      command, options.skip_layers,
      "Layers left in the model's own dtype: numbers, and sliding_window for those with "
      "a window; those of the scale file unless given");
  auto* scales =
      command.add_option("-s,--scales", options.scales, "Scale file, or a folder that has scales")
          ->check(a_path())
          ->type_name("FILE");
  command.add_flag("--unit-scales", options.unit_scales, "An FP8 cache with every scale 1")
      ->excludes(scales);
  add_accept_foreign(command, options.accept_foreign)->needs(scales);
}

void add_sampling(CLI::App& command, RunOptions& options) {
  command
      .add_option("-n,--max-new-tokens", options.max_new_tokens,
                  "Tokens to generate at most; unless given, what the model's "
                  "generation_config.json says, else 128")
      ->transform(whole_number(1))
      ->type_name("N");
  command
      .add_option("--temperature", options.temperature,
                  "0 takes the likeliest token; unless given, what the model's "
                  "generation_config.json says, else 0")
      ->check(number_between(0, 100))
      ->type_name("X");
  command
      .add_option("--top-k", options.top_k,
                  "Sample among the N likeliest, 0 for all; unless given, as the temperature")
      ->transform(whole_number(0, std::numeric_limits<int32_t>::max()))
      ->type_name("N");
  command
      .add_option("--top-p", options.top_p,
                  "Sample among the likeliest that make up X; unless given, as the temperature")
      ->check(number_above(0, 1))
      ->type_name("X");
  command.add_option("--seed", options.seed, "Seed of the sampling")
      ->transform(whole_number(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--samples-per-prompt", options.answers,
                  "Answers to each prompt, each with a seed of its own")
      ->transform(whole_number(1, kMostAnswers))
      ->type_name("N");
  command
      .add_option_function<std::vector<std::string>>(
          "--stop", [&options](const std::vector<std::string>& texts) { options.stops = texts; },
          "End an answer before this text; may be given several times")
      ->allow_extra_args(false)
      ->check(a_stop())
      ->type_name("TEXT");
  command
      .add_option("--logprobs", options.logprobs,
                  "Log-probabilities of each new token and of the K likeliest, with --json")
      ->transform(whole_number(0, kMostLogprobs))
      ->type_name("K");
}

void add_serving(CLI::App& command, RunOptions& options) {
  choice(command.add_option_function<std::string>(
             "--order",
             [&](const std::string& value) {
               options.order = value == "input" ? AnswerOrder::input : AnswerOrder::finished;
             },
             "Which answer comes first: the first prompt's, or the first that is done"),
         {"input", "finished"})
      ->default_str("input");
  command.add_option("--max-batch", options.max_batch, "Prompts that decode together at most")
      ->transform(whole_number(1, 1024))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--gpu-memory",
          [&](const std::string& value) { options.gpu_memory = *bytes_from_text(value); },
          "Memory that weights, working memory and KV cache may take together, on the CPU too, "
          "such as 80GiB; what is free on a device where it is not given")
      ->check(a_byte_size())
      ->type_name("SIZE");
}

}  // namespace

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command =
      app.add_subcommand("run", "Generate text with a paged KV cache, in FP8 or 16 bit");
  set_examples(*command, {"fp8kv run Llama-3.1-8B-kv --prompt \"London is the capital of\"",
                          "fp8kv run Llama-3.1-8B --scales scales.json --prompts prompts.jsonl"});
  command
      ->add_option("model", options.model,
                   "Model folder, or org/name[@revision] of the Hugging Face cache")
      ->required()
      ->check(a_path())
      ->type_name("MODEL");
  auto* text = command->add_option("text", "A prompt; - for prompts from standard input");
  text->check(a_prompt())->type_name("PROMPT");
  auto* prompt =
      add_values(*command, "-p,--prompt", "Prompts; several decode together")->type_name("TEXT...");
  auto* file =
      command
          ->add_option(
              "--prompts", options.prompt_file,
              "Prompts from a file of JSON lines; - for stdin, where each is taken up as "
              "it comes. A line has prompt, text, messages, conversations or input_ids. It "
              "may have id, max_tokens, temperature, top_k, top_p, seed, n, stop, "
              "stop_token_ids and logprobs, or continuations to score")
          ->check(a_path())
          ->type_name("FILE");
  prompt->excludes(file)->excludes(text);
  file->excludes(text);
  command->add_flag("--chat", options.as_chat,
                    "A prompt is what a user says: the chat template goes around it, and the model "
                    "answers");
  add_chat(*command, options.chat);
  add_cache(*command, options);
  add_sampling(*command, options);
  add_serving(*command, options);
  add_strict(*command, options.strict);
  add_device(*command, options.device, options.threads);
  add_common(*command, options);
  command->get_option("--logprobs")->needs(command->get_option("--json"));
  command->final_callback([&options, prompt, text] {
    options.prompts = prompt->results();
    const std::string alone = text->count() > 0 ? text->as<std::string>() : "";
    if (alone == "-") options.prompt_file = alone;
    if (!alone.empty() && alone != "-") options.prompts = {alone};
  });
  return command;
}

}  // namespace fp8kv
