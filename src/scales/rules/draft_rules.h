// A table of rules: how runtimes treat the scales of layers that draft tokens. A rule repeats the
// runtime's source, or what its loader of drafts did; `source` says which.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/draft_layers.h"
#include "scales/rules/runtime_rules.h"
#include "scales/scale_names.h"

namespace fp8kv {

// How the scales of draft layers are named, where all runtimes that read them can.
ScaleSpelling draft_spelling(bool latent);

// A draft layer as runtimes meet it.
struct DraftFacts {
  DraftLayer layer;
  bool latent = false;  // it caches a latent vector (MLA)
  // The names that its scales have; none where it has no scales.
  std::vector<ScaleSpelling> spellings = {};
};

struct DraftVerdict {
  RuntimeOutcome outcome = RuntimeOutcome::unknown;
  std::string sentence;
  std::string source;
};

// The verdict for `version` of the column, or for its newest one.
DraftVerdict draft_verdict(const DraftFacts& draft, const RuntimeColumn& column,
                           std::optional<RuntimeVersion> version);

}  // namespace fp8kv
