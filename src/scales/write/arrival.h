// Predicts what runtimes do with scales that are about to be written: which runtimes lose them, and
// how large the rounding errors are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/numbers/dtype.h"
#include "core/scales/scales.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {

struct ArrivalNotes {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// The notes on a folder with these facts and scales. `dtype` is that of the model's weights, if its
// config tells.
ArrivalNotes rounding_notes(const KvScales& scales, FactSet facts, std::optional<DType> dtype);

// One warning for each runtime whose newest versions do not use the scales. Names those that do.
std::vector<std::string> loss_warnings(FactSet facts);

// A command to serve the folder, for each runtime whose newest versions use the scales. Empty for a
// scale file.
struct ServeCommand {
  const char* runtime;
  std::string command;  // for a shell
};
// `skipped`: layers left in 16 bit, for runtimes that can.
std::vector<ServeCommand> serve_commands(FactSet facts, const std::string& folder,
                                         std::span<const int64_t> skipped = {});

}  // namespace fp8kv
