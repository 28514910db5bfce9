// A table of rules: how runtimes treat the scales of draft layers. A rule comes from the runtime's
// source, or from a run of its draft loader; `source` says which.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/drafts/draft_layers.h"
#include "scales/rules/runtime_rules.h"
#include "scales/scale_names.h"

namespace fp8kv {

// The spelling of a draft layer's scales that every runtime that reads them understands.
ScaleSpelling draft_spelling(bool latent);

// A draft layer, described by the facts that the rules look at.
struct DraftFacts {
  DraftLayer layer;
  bool latent = false;  // it caches a latent vector (MLA)
  // The spellings of its scales; empty if it has none.
  std::vector<ScaleSpelling> spellings = {};
};

struct DraftVerdict {
  RuntimeOutcome outcome = RuntimeOutcome::unknown;
  std::string sentence;
  std::string source;
};

// The verdict for `version` of the column, or for the column's newest version.
DraftVerdict draft_verdict(const DraftFacts& draft, const RuntimeColumn& column,
                           std::optional<RuntimeVersion> version);

}  // namespace fp8kv
