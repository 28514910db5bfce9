// Estimates how long `fp8kv calibrate` takes on this machine.
#pragma once

#include "checkpoint/checkpoint.h"
#include "show/models/plan_text.h"

namespace fp8kv {

// The time for the default windows of `calibrate`, on its default backend and on one core. Measures
// the speed of one product on each, which takes about a second. Throws for models that fp8kv cannot
// compute.
CalibrationTime calibration_time(const Checkpoint& checkpoint);

}  // namespace fp8kv
