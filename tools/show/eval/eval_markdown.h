// The outcome of an evaluation as Markdown, for the page of a job in CI.
#pragma once

#include <span>
#include <string>

#include "eval/eval_report.h"
#include "eval/gates.h"
#include "tasks/compare/task_report.h"

namespace fp8kv {

// The verdict, the figures of every cache, every check, and the commands to serve the advised one.
std::string eval_markdown(const EvalReport& report, std::span<const GateResult> gates);

// The verdict on each cache and the table of each task.
std::string tasks_markdown(const std::string& model, std::span<const TaskReport> reports);

}  // namespace fp8kv
