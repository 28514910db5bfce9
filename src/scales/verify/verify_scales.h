// Verifies whether the scales of a folder or a scale file reach the memory of runtimes. Reports the
// fate of each layer, how to serve, and remedies. Runs no runtime.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scales/diagnose.h"
#include "scales/rules/runtime_choice.h"
#include "scales/verify/layer_fate.h"

namespace fp8kv {

struct VerifyRequest {
  std::vector<ChosenRuntime> asked;  // the runtimes in which every scale must arrive
  // Nobody chose the runtimes: report all other columns too, and require only runtimes that know
  // the model, if any does.
  bool usual = false;
  ServingCase serving;
};

struct VerifiedRuntime {
  ChosenRuntime chosen;
  bool asked = false;
  RuntimeFate fate;
  std::vector<DraftVerdict> drafts = {};  // one for each of ScalesOnDisk, in order
  std::string serve;               // the command to serve with; "" if the scales do not arrive
  std::vector<std::string> fixes;  // the best first; only for runtimes that were asked for
};

struct VerifyReport {
  ScalesOnDisk scales;
  std::string dialect;
  Provenance provenance;
  std::vector<VerifiedRuntime> runtimes;  // in the table's order
  std::vector<Diagnosis> diagnoses;
  std::vector<std::string> warnings;  // about scales that arrive in runtimes that were asked for
  std::optional<Error> refusal;       // why the scales cannot be used
  bool arrives = false;  // every scale arrives in every requested runtime, without a refusal
};

VerifyReport verify_scales(const std::filesystem::path& path, const VerifyRequest& request);

}  // namespace fp8kv
