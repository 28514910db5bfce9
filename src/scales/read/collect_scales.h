// Which tensors of a checkpoint are scales, and of which dialect: by names first, then by what the
// config says. Reads no values. Messages name tensors, not the folder.
#pragma once

#include <string_view>
#include <vector>

#include "scales/read/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// What the names say. Points into the store.
struct Collected {
  struct Candidate {
    const StoredTensor* stored;
    int64_t layer;
    DialectMatch match;
  };
  std::vector<Candidate> candidates;  // by name
  std::vector<Candidate> drafts;  // the same of draft layers, by their place in the store's list
  std::vector<IgnoredTensor> ignored;
  std::vector<const StoredTensor*> unknown;  // look like scales, but no row has them
  std::string_view prefix;
  bool k_norm = false;  // the model normalises K between its projection and RoPE
};

// Throws for scales of two stacks of layers, and for one of V at the projection of K.
Collected collect_scales(const ScaleStore& store);

// Throws where there are unknown ones.
void check_known(const Collected& collected);

// The candidates with the names of the rows that they could be of.
std::vector<ScaleTensor> candidate_tensors(const std::vector<Collected::Candidate>& candidates);

// Gives each tensor the row that the config says. Throws where the config leaves that open or names
// another tool. REQUIRES candidate_tensors(candidates).
void choose_rows(const std::vector<Collected::Candidate>& candidates, const KvConfig& config,
                 std::vector<ScaleTensor>& tensors);

// A scale may stand under several names, each for another runtime: keeps that of the first row, and
// returns the others. Throws where they are not equal, and where one layer has another form than
// the next. REQUIRES tensors with a row and values.
std::vector<IgnoredTensor> take_out_duplicates(std::vector<ScaleTensor>& tensors);

}  // namespace fp8kv
