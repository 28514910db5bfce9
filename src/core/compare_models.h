// Whether scales that were made for one model serve another: what differs between the two, and by
// how much weights moved. Knows identities only, no files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/model_identity.h"

namespace fp8kv {

enum class ModelMatch {
  same,
  same_kv,    // but for what comes behind the last K and V
  fine_tune,  // the same config, and weights that moved a little
  other
};

// Weights of a layer that moved further, relative to their size, are of another model. Fine-tuning
// moves them by a few per cent; of models that were trained apart they differ by 141 % (two
// independent values of the same spread differ by sqrt(2) of it). In between are long trainings.
inline constexpr double kMostMoved = 0.3;

// A tensor whose sampled rows, or whose largest one, grew or shrank by more than that factor moved
// by more than its own size. No fine-tune does that, and a cache's scales follow the largest row.
inline constexpr double kMostGrown = 2;

struct ModelComparison {
  ModelMatch match = ModelMatch::same;
  std::vector<std::string> config;  // "rope_theta is 10000 instead of 500000"
  std::vector<size_t> layers;       // whose weights differ
  bool embedding = false;           // differs
  bool rest = false;                // differs
  // How far the sampled weights moved where they moved furthest, relative to their size: the root
  // of the mean over a layer's tensors of (sum of squared differences) / (sum of squares).
  double moved = 0;
  // The largest factor, 1 or more, by which the sampled rows of one tensor grew or shrank.
  double grown = 1;
  std::string grown_text;  // "rows of 'NAME' that are 1000 times as large"; "" up to kMostGrown
  std::string moved_most;  // "layer 3", "the embedding"; "" where no sample moved
};

ModelComparison compare_models(const ModelIdentity& made_for, const ModelIdentity& found);

// What differs, in one line; "" for the same model.
std::string difference_text(const ModelComparison& comparison);

}  // namespace fp8kv
