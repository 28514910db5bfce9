#include "cli/commands/cli_eval_tasks.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/flags/cli_checks.h"
#include "tasks/compare/recovery_test.h"
#include "tasks/items/needle.h"
#include "tasks/task_kinds.h"

namespace fp8kv {
namespace {

constexpr uint64_t kLongestNeedleText = uint64_t{1} << 24;

// Flags that measure on a text, and therefore exclude --task.
constexpr const char* kOfText[] = {"--fail-if", "--write-scales", "--table",
                                   "--plot",    "--against",      "--greedy-tokens"};

void add_needle(CLI::App& command, CLI::Option* task, NeedleOptions& options) {
  command
      .add_option(
          "--needle-lengths", options.lengths,
          "Tokens of a text with a needle, its question and the answer, for the task needle")
      ->delimiter(',')
      ->transform(whole_number(128, kLongestNeedleText))
      ->needs(task)
      ->default_str("512,1024,2048")
      ->type_name("N,...");
  command
      .add_option("--needle-depths", options.depths,
                  "Depths of the needle, evenly from the start of the text to its end")
      ->transform(whole_number(1, 101))
      ->needs(task)
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option_function<std::vector<std::string>>(
          "--needle-kinds",
          [&options](const std::vector<std::string>& names) {
            options.kinds.clear();
            for (const std::string& name : names) {
              options.kinds.push_back(
                  with_context("--needle-kinds", [&] { return parse_needle_kind(name); }));
            }
          },
          "'single': one number. 'keys': four words have a number, and one is asked for. 'values': "
          "one word has three numbers [default: single]")
      ->delimiter(',')
      ->needs(task)
      ->type_name("KIND,...");
  command.add_option("--needle-samples", options.samples, "Items for each kind, length and depth")
      ->transform(whole_number(1, 1000))
      ->needs(task)
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--needle-seed", options.seed, "Draws the words and numbers")
      ->needs(task)
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

void add_eval_tasks(CLI::App& command, TaskOptions& options) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const TaskRow& row : task_rows()) rows.emplace_back(row.name, row.summary);
  auto* task = command.add_option_function<std::vector<std::string>>(
      "--task",
      [&options](const std::vector<std::string>& texts) {
        options.tasks.clear();
        for (const std::string& text : texts) {
          options.tasks.push_back(with_context("--task", [&] { return parse_task(text); }));
        }
      },
      "Ask every cache the items of a file, in place of reading --data: NAME=FILE, with a NAME of "
      "the list below; may be given several times");
  task->allow_extra_args(false)->type_name("NAME=FILE");
  for (const char* other : kOfText) task->excludes(command.get_option(other));
  add_help_table(command, "Tasks", rows);
  command.add_option("--items", options.items, "The first items of each task alone; 0: all")
      ->transform(whole_number(0))
      ->needs(task)
      ->type_name("N");
  auto* few_shot = command
                       .add_option("--few-shot", options.few_shot,
                                   "Examples in front of each item: the first ones of the file, "
                                   "which are not asked then, of the item's subject if it has one")
                       ->transform(whole_number(0, 1000))
                       ->needs(task)
                       ->type_name("N");
  command
      .add_option("--few-shot-from", options.few_shot_from, "Take the examples from another file")
      ->check(a_path())
      ->needs(few_shot)
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--accept",
          [&options](const std::string& text) {
            options.acceptance = with_context("--accept", [&] { return parse_acceptance(text); });
          },
          "Test each cache until it is decided, with 95% confidence: \"recovery >= 99%\" of the "
          "baseline's accuracy. Exit with 1 if one is refused, with 4 if one is not decided. Items "
          "come in random order then")
      ->needs(task)
      ->type_name("EXPR");
  add_needle(command, task, options.needle);
}

}  // namespace fp8kv
