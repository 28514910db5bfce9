// What runtimes make of scales that are about to be written: which of them lose them, and how far
// those that round them are off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/scales.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {

struct ArrivalNotes {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Of a folder with these facts and scales. `dtype` is that of the model's weights, where its config
// tells.
ArrivalNotes rounding_notes(const KvScales& scales, FactSet facts, std::optional<DType> dtype);

// A warning for each runtime whose newest versions do not use the scales, with those that do.
std::vector<std::string> loss_warnings(FactSet facts);

// How to serve the folder, for each runtime whose newest versions use the scales; none for a scale
// file.
struct ServeCommand {
  const char* runtime;
  std::string command;  // for a shell
};
std::vector<ServeCommand> serve_commands(FactSet facts, const std::string& folder);

}  // namespace fp8kv
