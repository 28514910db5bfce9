// The task "needle": see needle.h.
#pragma once

#include "tasks/task.h"

namespace fp8kv {

// Items in the words of the text in the request's file. Throws if they cannot be made of it.
Task read_needle_task(const TaskRequest& request);

}  // namespace fp8kv
