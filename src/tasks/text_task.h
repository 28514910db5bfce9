// The tasks whose answers are generated: greedy text, with each cache.
#pragma once

#include "tasks/task.h"

namespace fp8kv {

// Each throws as the reader of its items does. See gsm8k.h and text_form.h.
Task read_gsm8k_task(const TaskRequest& request);
Task read_generate_task(const TaskRequest& request);

}  // namespace fp8kv
