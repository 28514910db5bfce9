// What runtimes do with the scales of layers that draft tokens: a table of rules. A rule repeats
// what the runtime's source says, or what its own loader of drafts did where its source says so.
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

// Where the runtime takes the scales of the model's own layers; in `version` of that column, where
// it is given, else in its newest.
DraftVerdict draft_verdict(const DraftFacts& draft, const RuntimeColumn& column,
                           std::optional<RuntimeVersion> version);

}  // namespace fp8kv
