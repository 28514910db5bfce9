// An estimate of a calibration's time, for the user who waits for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "core/model/config.h"
#include "data/dataset.h"

namespace fp8kv {

// "about 14 min for 512 windows, 1,048,576 tokens, through 32 layers (products of the model's width
// run at 222 GFLOP/s), and 17.2 GiB of memory beside the weights". work_estimate.h counts and
// measures.
// If the run may stop after `least` windows, the time is a range that begins there.
// Returns nullopt for a run of a few seconds: its measured speed would be mostly noise of the
// machine.
std::optional<std::string> work_note(const ModelConfig& config, Backend& backend,
                                     const Windows& windows, size_t least);

}  // namespace fp8kv
