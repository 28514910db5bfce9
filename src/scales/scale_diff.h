// How two sets of scales differ, layer by layer, and what the difference looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scales.h"

namespace fp8kv {

// One scale of both sides. `ratio` is b / a.
struct ScalePair {
  float a = 0;
  float b = 0;
  double ratio() const { return static_cast<double>(b) / static_cast<double>(a); }
};

struct DiffRow {
  size_t layer = 0;
  size_t head = 0;
  ScalePair k;
  ScalePair v;
  bool differs = false;  // K or V, beyond the tolerance
};

// The scales of a draft layer on both sides; a side without them has none.
struct DraftDiff {
  std::string layer;
  LayerScales a;
  LayerScales b;
  bool differs = false;  // beyond the tolerance, or there on one side alone
};

// The scales of Q in layers where both sides have one.
struct QDiff {
  size_t layers = 0;
  size_t differing = 0;
  size_t farthest_layer = 0;  // the one whose ratio is farthest from 1; the first of equals
  ScalePair farthest;
};

// A pattern in the difference: its name, what it means, and what to do.
struct DiffFinding {
  std::string name;
  std::string sentence;
  std::string remedy;
};

struct ScaleDiff {
  bool per_head = false;  // one row per layer and KV head, else one per layer
  std::vector<DiffRow> rows;
  size_t differing_layers = 0;
  size_t last_place_layers = 0;  // the same but for the last place; not among those that differ
  size_t layers = 0;             // with a KV cache
  std::vector<size_t> without_cache;  // no row
  std::vector<DraftDiff> drafts;      // no row either
  std::optional<QDiff> q;             // absent unless both sides have scales of Q
  DiffRow farthest;  // whose K or V is farthest from a ratio of 1; the first of equals
  std::vector<DiffFinding> findings;
  std::vector<std::string> notes;  // what was done to make the two comparable
};

// Two scales are the same when |b / a - 1| <= tolerance, or when no float lies between them: some
// tools divide by 448, others multiply by 1/448. Before that,
// scales for FNUZ are halved, which makes them scales for E4M3FN; and where one side has a scale
// per head and the other one per layer, the heads are reduced to their maximum. Findings are made
// from all scales, whatever the tolerance; there are none where every scale is the same. Throws a
// check error when the numbers of layers or of heads differ, and when a layer has a KV cache on one
// side alone. Draft layers and Q count in `drafts` and `q` alone: no finding is made from them. A
// side without scales of Q has them from its maxima of Q, where the other side has some. REQUIRES
// values that check_values accepts, tolerance >= 0.
ScaleDiff diff_scales(const KvScales& a, const KvScales& b, double tolerance);

}  // namespace fp8kv
