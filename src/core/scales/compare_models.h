// Decides whether scales made for one model serve another: which parts differ, and how far the
// weights moved. Works on identities alone and reads no files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/model/model_identity.h"

namespace fp8kv {

enum class ModelMatch {
  same,
  same_kv,    // they differ only behind the last K and V
  fine_tune,  // the same config, and weights that moved a little
  other
};

// The limit for `moved` up to which a model counts as a fine-tune. Fine-tuning moves the weights of
// a layer by a few per cent of their size. Models that were trained apart differ by 141 %: the
// distance of two independent values of the same spread is sqrt(2) of it. Long trainings lie in
// between.
inline constexpr double kMostMoved = 0.3;

// A tensor whose sampled rows, or whose largest one, grew or shrank by more than this factor moved
// by more than its own size. No fine-tune does that, and a cache's scales follow the largest row.
inline constexpr double kMostGrown = 2;

struct ModelComparison {
  ModelMatch match = ModelMatch::same;
  std::vector<std::string> config;  // "rope_theta is 10000 instead of 500000"
  std::vector<size_t> layers;       // layers with different weights
  bool embedding = false;           // whether the embeddings differ
  bool rest = false;                // whether the weights behind the last K and V differ
  // The largest relative distance of the sampled weights in any layer. It is the root of the mean,
  // over the layer's tensors, of (sum of squared differences) / (sum of squares).
  double moved = 0;
  // The largest factor, 1 or more, by which the sampled rows of one tensor grew or shrank.
  double grown = 1;
  std::string grown_text;  // "rows of 'NAME' that are 1000 times as large"; "" up to kMostGrown
  std::string moved_most;  // "layer 3", "the embedding"; "" if no sample moved
};

ModelComparison compare_models(const ModelIdentity& made_for, const ModelIdentity& found);

// The differences, in one line; "" for the same model.
std::string difference_text(const ModelComparison& comparison);

}  // namespace fp8kv
