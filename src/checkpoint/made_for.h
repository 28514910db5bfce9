// Whether scales may be used with a model: they fit its shape, and were made for it, or for one of
// which it is a fine-tune.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model_description.h"
#include "core/scales.h"

namespace fp8kv {

// Scales of another model are taken only when the user asks for that by `flag`.
struct ForeignScales {
  bool accepted = false;
  std::string flag = "accept_foreign_scales";  // for messages
};

// What is to be said of scales that may be used.
struct ScalesFit {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::string foreign;  // in what the model differs, where scales of another one were accepted
};

// Throws unless the scales are usable and fit the model (values, layers, heads, model type) and are
// made for it, as far as their fingerprint tells:
//   the same K and V           taken; a note where only what comes behind them differs
//   a fine-tune                taken with a warning that says how far weights moved
//   another model              refused, saying what differs, unless `foreign` accepts it
// A fingerprint of version 1 tells of the K and V projections alone, which a note says. A model
// that cannot be computed here is another one: the scales' own was computed. `source` is named in
// messages.
ScalesFit check_made_for(const KvScales& scales, const Checkpoint& checkpoint,
                         const ModelDescription& model, const std::string& source,
                         const ForeignScales& foreign = {});

}  // namespace fp8kv
