// How long `fp8kv calibrate` takes on this machine, measured before anyone waits for it.
#pragma once

#include "checkpoint/checkpoint.h"
#include "show/plan_text.h"

namespace fp8kv {

// For the windows that `calibrate` runs unless told otherwise, by the speed of one product on the
// backend that it would take and on one core. Takes about a second. Throws for models that are not
// computed here.
CalibrationTime calibration_time(const Checkpoint& checkpoint);

}  // namespace fp8kv
