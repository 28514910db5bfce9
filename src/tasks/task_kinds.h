// A table of the tasks that `eval --task` knows.
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
  // Reads the items of a file. Throws for an item that cannot be asked. The error names the place.
  Task (*read)(const TaskRequest& request);
};
std::span<const TaskRow> task_rows();

struct TaskArgument {
  const TaskRow* row = nullptr;
  std::filesystem::path file;
};

// Parses "choices=FILE". Throws a usage Error that lists the known tasks.
TaskArgument parse_task(const std::string& text);

}  // namespace fp8kv
