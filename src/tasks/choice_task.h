// The task "choices": which of several continuations a model finds likeliest.
#pragma once

#include "tasks/task.h"

namespace fp8kv {

// Throws for a file with items of two forms, and as read_choice_item does.
Task read_choice_task(const TaskRequest& request);

}  // namespace fp8kv
