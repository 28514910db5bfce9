// The differences between two sets of scales, layer by layer, and the patterns in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scales/scales.h"

namespace fp8kv {

// One scale on both sides. `ratio` is b / a.
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
  bool differs = false;  // K or V differs beyond the tolerance
};

// The scales of a draft layer on both sides; empty on a side without them.
struct DraftDiff {
  std::string layer;
  LayerScales a;
  LayerScales b;
  bool differs = false;  // beyond the tolerance, or only one side has the layer
};

// The scales of Q in layers that have one on both sides.
struct QDiff {
  size_t layers = 0;
  size_t differing = 0;
  size_t farthest_layer = 0;  // the layer whose ratio is farthest from 1; ties: the first
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
  size_t last_place_layers = 0;  // differ only in the last place; not counted in differing_layers
  size_t layers = 0;             // with a KV cache
  std::vector<size_t> without_cache;  // these layers have no row
  std::vector<DraftDiff> drafts;      // these layers have no row
  std::optional<QDiff> q;             // absent unless both sides have scales of Q
  DiffRow farthest;  // the row whose K or V ratio is farthest from 1; ties: the first
  std::vector<DiffFinding> findings;
  std::vector<std::string> notes;  // the conversions that made the sides comparable
};

// Compares two sets of scales. Two scales are equal if |b / a - 1| <= tolerance, or if they are
// neighbouring floats: some tools divide by 448, others multiply by 1/448.
//
// Scales for FNUZ are first halved, which makes them scales for E4M3FN. If only one side has scales
// per head, its heads are reduced to their maximum. Findings come from all scales, whatever the
// tolerance; identical sides have none. Draft layers and Q appear in `drafts` and `q` alone, never
// in findings. If only one side has scales of Q, the other gets them from its maxima of Q.
//
// Throws a check error if the sides differ in the number of layers or heads, or in which layers
// have a KV cache. REQUIRES values that check_values accepts, and tolerance >= 0.
ScaleDiff diff_scales(const KvScales& a, const KvScales& b, double tolerance);

}  // namespace fp8kv
