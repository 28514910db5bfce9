// What a calibration will take, for the user who waits for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "core/config.h"
#include "data/dataset.h"

namespace fp8kv {

// "about 14 min for 512 windows, 1,048,576 tokens, through 32 layers (products of the model's width
// run at 222 GFLOP/s), and 17.2 GiB of memory beside the weights", by what work_estimate.h counts
// and measures. Of windows of which some may not be needed, but `least` are, from what these take.
// Nothing of a run of a few seconds: what is measured of that is mostly what else the machine does.
std::optional<std::string> work_note(const ModelConfig& config, Backend& backend,
                                     const Windows& windows, size_t least);

}  // namespace fp8kv
