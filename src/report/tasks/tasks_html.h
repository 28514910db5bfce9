// The tasks of `eval --task` as one HTML page to view, print and keep. It loads nothing and needs
// no script. Equal reports and facts give equal bytes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/scales/scales.h"
#include "tasks/compare/task_report.h"

namespace fp8kv {

// Facts of the run that task reports do not hold. Texts may be "".
struct TasksPageFacts {
  std::string model;
  std::string fingerprint;
  std::string device;
  std::string scales;                // where the scales are from
  std::vector<DataFile> files;       // of items and examples
  std::vector<DataFile> scale_text;  // read for the scales of policies
  std::string date;                  // "2026-11-22"
  std::string tool_version;
};

// Escapes every text, since prompts, answers and names may be hostile.
std::string tasks_html(std::span<const TaskReport> reports, const TasksPageFacts& facts);

}  // namespace fp8kv
