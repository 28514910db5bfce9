// The tasks that `eval --task` knows: a table.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace fp8kv {

struct Task;
struct TaskRequest;

struct TaskRow {
  std::string name;
  std::string summary;  // for people
  // Reads the items of a file. Throws, naming the place, for one that cannot be asked.
  Task (*read)(const TaskRequest& request);
};
std::span<const TaskRow> task_rows();

struct TaskArgument {
  const TaskRow* row = nullptr;
  std::filesystem::path file;
};

// "choices=FILE". Throws a usage Error with the names that there are.
TaskArgument parse_task(const std::string& text);

}  // namespace fp8kv
