// The task "choices": asks which of several continuations a model finds likeliest.
#pragma once

#include "tasks/task.h"

namespace fp8kv {

// Reads the items of a file. Throws if they have two forms, and like read_choice_item.
Task read_choice_task(const TaskRequest& request);

}  // namespace fp8kv
