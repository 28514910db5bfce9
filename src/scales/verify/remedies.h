// What to do where a runtime does not get the scales: each way out was asked of the same rules.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "scales/read/found_scales.h"
#include "scales/rules/runtime_choice.h"
#include "scales/verify/layer_fate.h"

namespace fp8kv {

// What `inject` would make of a folder, for one target.
struct Reinjection {
  std::string command;  // for a shell
  ScalesOnDisk scales;  // of the output
};

// Of every target that takes the model, the most general first; then the same with scales raised to
// powers of two. Where the folder's own scales cannot be used, those that a calibration would make
// stand in for them, and the command begins with one.
std::vector<Reinjection> reinjections(const Checkpoint& checkpoint, const FoundScales& found,
                                      const ScalesOnDisk& on_disk);

// The ways out for one runtime, the best first; none only where its fate arrives. `path` is the
// folder or the scale file; `reinjections` are empty for a scale file.
std::vector<std::string> remedies(const std::string& path, const ScalesOnDisk& on_disk,
                                  const ChosenRuntime& chosen, const ServingCase& serving,
                                  const std::vector<Reinjection>& reinjections);

}  // namespace fp8kv
