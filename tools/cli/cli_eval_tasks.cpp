#include "cli/cli_eval_tasks.h"

#include <CLI/CLI.hpp>

#include "about/help.h"
#include "base/error.h"
#include "cli/cli_checks.h"
#include "tasks/recovery_test.h"
#include "tasks/task_kinds.h"

namespace fp8kv {
namespace {

// Flags that measure on a text, and therefore exclude --task.
constexpr const char* kOfText[] = {"--fail-if", "--write-scales", "--report",       "--table",
                                   "--plot",    "--against",      "--greedy-tokens"};

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
          "Test each cache until it is decided, with 95% confidence, and exit with 1 unless all "
          "are accepted: \"recovery >= 99%\" of the baseline's accuracy. Items come in random "
          "order then")
      ->needs(task)
      ->type_name("EXPR");
}

}  // namespace fp8kv
