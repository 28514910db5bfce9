// The tasks whose answers are greedy texts, generated with each cache.
#pragma once

#include "tasks/task.h"

namespace fp8kv {

// Each throws like the reader of its items, see gsm8k.h and text_form.h.
Task read_gsm8k_task(const TaskRequest& request);
Task read_generate_task(const TaskRequest& request);

}  // namespace fp8kv
