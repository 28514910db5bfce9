// Whether the scales of a folder or a scale file reach the memory of runtimes: what becomes of each
// layer's in each of them, how to serve, and what to do where they do not. Runs no runtime.
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
  std::vector<ChosenRuntime> asked;  // those in which every scale must arrive
  // Nobody chose them: tell of all other columns of the table too, and ask for those that have the
  // model alone, if any has.
  bool usual = false;
  ServingCase serving;
};

struct VerifiedRuntime {
  ChosenRuntime chosen;
  bool asked = false;
  RuntimeFate fate;
  std::vector<DraftVerdict> drafts = {};  // one for each of ScalesOnDisk, in order
  std::string serve;                      // the command to serve with; "" where nothing arrives
  std::vector<std::string> fixes;         // ways out, the best first; for those that were asked for
};

struct VerifyReport {
  ScalesOnDisk scales;
  std::string dialect;
  Provenance provenance;
  std::vector<VerifiedRuntime> runtimes;  // in the table's order
  std::vector<Diagnosis> diagnoses;
  std::vector<std::string> warnings;  // of scales that arrive where they were asked for
  std::optional<Error> refusal;       // why the scales that are there cannot be used
  bool arrives = false;  // every scale in everything asked for, and there is no refusal
};

VerifyReport verify_scales(const std::filesystem::path& path, const VerifyRequest& request);

}  // namespace fp8kv
