// Remedies for scales that do not reach a runtime. Each one was checked against the same rules.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "scales/read/found_scales.h"
#include "scales/rules/runtime_choice.h"
#include "scales/verify/layer_fate.h"

namespace fp8kv {

// The result of `inject` on a folder, for one target.
struct Reinjection {
  std::string command;  // for a shell
  ScalesOnDisk scales;  // the scales of the output
};

// One entry for every target that takes the model, the most general first; then the same targets
// with scales raised to powers of two. If the folder's own scales are unusable, stand-ins for
// calibrated ones take their place, and the command begins with a calibration.
std::vector<Reinjection> reinjections(const Checkpoint& checkpoint, const FoundScales& found,
                                      const ScalesOnDisk& on_disk);

// The remedies for one runtime, the best first. Empty only if its fate arrives. `path` is the
// folder or the scale file. `reinjections` is empty for a scale file.
std::vector<std::string> remedies(const std::string& path, const ScalesOnDisk& on_disk,
                                  const ChosenRuntime& chosen, const ServingCase& serving,
                                  const std::vector<Reinjection>& reinjections);

}  // namespace fp8kv
