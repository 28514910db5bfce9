// Defaults for sampling and for the number of new tokens.
#pragma once

#include "base/log.h"
#include "checkpoint/generation_config.h"
#include "generate/requests.h"
#include "options/options.h"

namespace fp8kv {

// The defaults of every request, without a prompt or a seed. Flags come first, then
// generation_config.json, then greedy decoding and the token count of Request. One line on `log`
// says what the file contributed, and which of its settings were ignored.
Request choose_defaults(const RunOptions& options, const GenerationConfig& config, Log& log);

}  // namespace fp8kv
