// The tasks that `eval --task` knows: a table.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace fp8kv {

enum class TaskKind { choices };

struct TaskRow {
  TaskKind kind;
  std::string name;
  std::string summary;  // for people
};
std::span<const TaskRow> task_rows();

struct TaskArgument {
  TaskKind kind = TaskKind::choices;
  std::filesystem::path file;
};

// "choices=FILE". Throws a usage Error with the names that there are.
TaskArgument parse_task(const std::string& text);

}  // namespace fp8kv
