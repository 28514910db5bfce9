// Decides whether scales may be used with a model. They must fit its shape, and be made for it or
// for a model that it is a fine-tune of.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/scales.h"

namespace fp8kv {

// Whether the user accepts scales of another model. The user asks for it by `flag`.
struct ForeignScales {
  bool accepted = false;
  std::string flag = "accept_foreign_scales";  // for messages
};

// Messages about scales that may be used.
struct ScalesFit {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::string foreign;  // how the model differs, if scales of another model were accepted
};

// Throws unless the scales are usable and fit the model: values, layers, heads, model type. They
// must also be made for the model, as far as their fingerprint tells:
//   the same K and V           taken; with a note if only the weights behind K and V differ
//   a fine-tune                taken, with a warning that says how far weights moved
//   another model              refused, saying what differs, unless `foreign` accepts it
// A fingerprint of version 1 covers the K and V projections alone, and a note says so. A model that
// cannot be computed counts as another model, since the model behind the scales was computed.
// Messages name `source`.
ScalesFit check_made_for(const KvScales& scales, const Checkpoint& checkpoint,
                         const ModelDescription& model, const std::string& source,
                         const ForeignScales& foreign = {});
// For a model whose config was read: the function above may have to read it.
ScalesFit check_made_for(const KvScales& scales, const Checkpoint& checkpoint,
                         const ModelConfig& config, const std::string& source,
                         const ForeignScales& foreign = {});

}  // namespace fp8kv
