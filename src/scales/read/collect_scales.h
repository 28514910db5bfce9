// Finds the scale tensors of a checkpoint and their dialects: by name first, then by config. Reads
// no values. Messages name tensors, not the folder.
#pragma once

#include <string_view>
#include <vector>

#include "scales/read/stores/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// The result of matching names. Points into the store.
struct Collected {
  struct Candidate {
    const StoredTensor* stored;
    int64_t layer;
    DialectMatch match;
  };
  std::vector<Candidate> candidates;  // by name
  // Candidates of draft layers; `layer` is the place in the store's list of draft layers.
  std::vector<Candidate> drafts;
  std::vector<IgnoredTensor> ignored;
  std::vector<const StoredTensor*> unknown;  // look like scales, but match no row
  std::string_view prefix;
  bool k_norm = false;  // the model normalises K between its projection and RoPE
};

// Throws for scales in two stacks of layers, and for a scale of V at the projection of K.
Collected collect_scales(const ScaleStore& store);

// Throws if there are unknown tensors.
void check_known(const Collected& collected);

// The candidates as tensors, each with the names of its possible rows.
std::vector<ScaleTensor> candidate_tensors(const std::vector<Collected::Candidate>& candidates);

// Gives each tensor the row that the config names. Throws if the config leaves the row open or
// names another tool. REQUIRES candidate_tensors(candidates).
void choose_rows(const std::vector<Collected::Candidate>& candidates, const KvConfig& config,
                 std::vector<ScaleTensor>& tensors);

// One scale may have several names, one for each runtime: keeps the name of the first row and
// returns the others. Throws if their values differ, or if layers use different forms. REQUIRES
// tensors with a row and values.
std::vector<IgnoredTensor> take_out_duplicates(std::vector<ScaleTensor>& tensors);

}  // namespace fp8kv
