// How `run` draws tokens, and how many, where a record does not say.
#pragma once

#include "base/log.h"
#include "checkpoint/generation_config.h"
#include "generate/generate.h"
#include "options/options.h"

namespace fp8kv {

// A request without a prompt. Flags first, then generation_config.json, then the likeliest token
// and the number of new tokens of Request. What was taken from the file, and what could not be, is
// said on `log` in a line. The seed is left to each prompt.
Request choose_defaults(const RunOptions& options, const GenerationConfig& config, Log& log);

}  // namespace fp8kv
