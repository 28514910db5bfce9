// How `run` draws tokens where a record does not say.
#pragma once

#include "base/log.h"
#include "checkpoint/generation_config.h"
#include "cli/options.h"
#include "generate/sampling.h"

namespace fp8kv {

// Flags first, then generation_config.json, then the likeliest token. What was taken from the file,
// and what could not be, is said on `log` in a line. The seed is left to each prompt.
SamplingOptions choose_sampling(const RunOptions& options, const GenerationConfig& config,
                                Log& log);

}  // namespace fp8kv
