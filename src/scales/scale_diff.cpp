#include "scales/scale_diff.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

constexpr double kSqrt2 = 1.4142135623730951;
// A few units in the last place: two ways to compute the same F32 number.
constexpr double kFewUlps = 4.0 / (1 << 23);

using Pairs = std::vector<ScalePair>;

// All pairs of a diff.
struct Sides {
  Pairs k;
  Pairs v;

  bool all(const std::function<bool(const ScalePair&)>& holds) const {
    return std::all_of(k.begin(), k.end(), holds) && std::all_of(v.begin(), v.end(), holds);
  }
};

bool is_same(const ScalePair& pair) {
  return pair.a == pair.b;
}

// Whether two scales differ only in the last place. That happens if one tool divides by 448 and the
// other multiplies by 1/448.
bool are_neighbours(const ScalePair& pair) {
  return pair.a != pair.b && std::nextafter(pair.a, pair.b) == pair.b;
}

bool is_near(double value, double wanted) {
  return std::abs(value / wanted - 1) <= kFewUlps;
}

float as_bf16(float value) {
  return bf16_to_float(bf16_from_float(value));
}

float as_f16(float value) {
  return f16_to_float(f16_from_float(value));
}

// Swaps A and B in every pair.
Sides swapped(Sides sides) {
  for (Pairs* pairs : {&sides.k, &sides.v}) {
    for (ScalePair& pair : *pairs) std::swap(pair.a, pair.b);
  }
  return sides;
}

std::optional<DiffFinding> find_ones(const Sides& sides, const std::string& second) {
  if (!sides.all([](const ScalePair& pair) { return pair.b == 1; })) return std::nullopt;
  return DiffFinding{"all-ones",
                     cat("every scale of ", second,
                         " is 1: what a runtime uses when there is none, and what ModelOpt 0.23 to "
                         "0.42 made of nearly every scale"),
                     cat("use the other, or calibrate: ", second, " holds no measurement")};
}

std::optional<DiffFinding> find_fused(const Sides& sides, const std::string& first,
                                      const std::string& second) {
  const auto fused_by = [&](float (*round)(float)) {
    for (size_t i = 0; i < sides.k.size(); ++i) {
      const float larger = round(std::max(sides.k[i].a, sides.v[i].a));
      if (sides.k[i].b != larger || sides.v[i].b != larger) return false;
    }
    return true;
  };
  const bool exactly = fused_by([](float value) { return value; });
  const bool bf16 = !exactly && fused_by(as_bf16);
  if (!exactly && !bf16 && !fused_by(as_f16)) return std::nullopt;
  return DiffFinding{"fused",
                     cat(second, " has the larger of K's and V's scale of ", first, " for both",
                         exactly ? ""
                         : bf16  ? ", rounded to BF16"
                                 : ", rounded to F16"),
                     cat("nothing saturates with either; ", first, " is the finer")};
}

std::optional<DiffFinding> find_floored(const Sides& sides, const std::string& first,
                                        const std::string& second) {
  const bool raised =
      sides.all([](const ScalePair& pair) { return pair.b == std::max(pair.a, 1.0f); });
  if (!raised) return std::nullopt;
  return DiffFinding{
      "floored",
      cat(second, " is ", first,
          " with every scale below 1 raised to 1, as ModelOpt did until 0.42"),
      cat("use ", first, ": with a scale that is far too large small values vanish")};
}

std::optional<DiffFinding> find_rounded(const Sides& sides, const std::string& first,
                                        const std::string& second) {
  const auto rounded_by = [&](float (*round)(float)) {
    return sides.all([&](const ScalePair& pair) { return round(pair.a) == pair.b; });
  };
  const bool bf16 = rounded_by(as_bf16);
  if (!bf16 && !rounded_by(as_f16)) return std::nullopt;
  return DiffFinding{bf16 ? "bf16-rounding" : "f16-rounding",
                     cat(second, " is ", first, " rounded to ", bf16 ? "BF16" : "F16",
                         ", as in a checkpoint that stores scales in the model's dtype"),
                     bf16 ? "harmless: a scale is off by 0.4% at most"
                          : "harmless: a scale is off by 0.05% at most"};
}

std::optional<DiffFinding> find_rope(const Sides& sides, const std::string& first,
                                     const std::string& second) {
  if (!std::all_of(sides.v.begin(), sides.v.end(), is_same)) return std::nullopt;
  const bool grows = std::all_of(sides.k.begin(), sides.k.end(), [](const ScalePair& pair) {
    return pair.ratio() >= 1 && pair.ratio() <= kSqrt2 * (1 + kFewUlps);
  });
  if (!grows) return std::nullopt;
  return DiffFinding{"rope",
                     cat("V is the same, and K of ", second, " is up to 1.41 times that of ", first,
                         ": K of ", first, " may have been measured before RoPE"),
                     cat("use ", second, ": the cache holds K after RoPE")};
}

// The common factor of all pairs, or nullopt if they have none.
std::optional<double> common_ratio(const Sides& sides) {
  const double first = sides.k[0].ratio();
  const bool common =
      sides.all([&](const ScalePair& pair) { return is_near(pair.ratio(), first); });
  return common ? std::optional(first) : std::nullopt;
}

std::optional<DiffFinding> find_factor(const Sides& sides, const std::string& first,
                                       const std::string& second) {
  const auto ratio = common_ratio(sides);
  if (!ratio || *ratio < 1) return std::nullopt;
  if (is_near(*ratio, 1)) {
    return DiffFinding{"last-place", "the scales differ in the last place alone",
                       "harmless: one was divided by 448, the other multiplied by 1/448"};
  }
  if (sides.all([](const ScalePair& pair) { return pair.b == 2 * pair.a; })) {
    return DiffFinding{
        "doubled", cat(second, " is exactly twice ", first),
        cat("are those of ", second, " for FNUZ GPUs (MI300)? On disk scales are for E4M3FN")};
  }
  if (is_near(*ratio, 448.0 / 240.0)) {
    return DiffFinding{"divided-by-240",
                       cat(second, " is 448/240 of ", first,
                           ": it was divided by the maximum of E4M3FNUZ, not of E4M3FN"),
                       cat("use ", first, ": runtimes double scales for FNUZ GPUs themselves")};
  }
  return DiffFinding{"factor", cat(second, " is ", fixed(*ratio, 4), " times ", first),
                     "a headroom makes such a factor; nothing saturates with the larger"};
}

// The findings with A as the first side, then those with B as the first.
std::vector<DiffFinding> findings_of(const Sides& sides) {
  std::vector<DiffFinding> found;
  if (sides.all(is_same)) return found;
  const auto add = [&](std::optional<DiffFinding> finding) {
    if (finding) found.push_back(*std::move(finding));
    return finding.has_value();
  };
  const Sides other = swapped(sides);
  if (add(find_ones(sides, "B")) || add(find_ones(other, "A"))) return found;
  if (add(find_factor(sides, "A", "B")) || add(find_factor(other, "B", "A"))) return found;
  if (add(find_floored(sides, "A", "B")) || add(find_floored(other, "B", "A"))) return found;
  if (add(find_fused(sides, "A", "B")) || add(find_fused(other, "B", "A"))) return found;
  if (add(find_rounded(sides, "A", "B")) || add(find_rounded(other, "B", "A"))) return found;
  if (!add(find_rope(sides, "A", "B"))) add(find_rope(other, "B", "A"));
  return found;
}

double distance(const DiffRow& row) {
  return std::max(std::abs(std::log(row.k.ratio())), std::abs(std::log(row.v.ratio())));
}

[[noreturn]] void fail_apart(const char* noun, size_t a, size_t b) {
  throw Error(cat("A has scales for ", count_of(a, noun), ", B for ", b),
              "they are not of the same model", ErrorKind::check);
}

// Throws: only one side has a cache in these layers.
[[noreturn]] void fail_on_caches(const std::vector<size_t>& layers, bool only_a) {
  throw Error(cat(only_a ? "A" : "B", " has scales for ", layer_list(layers), ", where ",
                  only_a ? "B" : "A", " has no KV cache"),
              "they are not of the same model", ErrorKind::check);
}

// Throws if the sides have caches in different layers. Layers beyond a side's end count as layers
// without a cache.
void check_same_layers(const KvScales& a, const KvScales& b) {
  const bool every_layer =
      a.cached_layers() == a.layers.size() && b.cached_layers() == b.layers.size();
  if (every_layer && a.layers.size() != b.layers.size()) {
    fail_apart("layer", a.layers.size(), b.layers.size());
  }
  std::vector<size_t> only_a, only_b;
  for (size_t layer = 0; layer < std::max(a.layers.size(), b.layers.size()); ++layer) {
    const bool in_a = layer < a.layers.size() && a.layers[layer].has_cache();
    const bool in_b = layer < b.layers.size() && b.layers[layer].has_cache();
    if (in_a && !in_b) only_a.push_back(layer);
    if (in_b && !in_a) only_b.push_back(layer);
  }
  if (!only_a.empty()) fail_on_caches(only_a, true);
  if (!only_b.empty()) fail_on_caches(only_b, false);
}

KvScales comparable(const KvScales& scales, const char* name, bool reduce, ScaleDiff& diff) {
  if (kv_range(scales.format).fnuz) {
    diff.notes.push_back(cat(name, " is for E4M3FNUZ: its scales were halved"));
  }
  const KvScales converted = with_format(scales, stored_format(scales.format));
  if (!reduce || !converted.per_head()) return converted;
  diff.notes.push_back(
      cat(name, " has one scale per KV head, the other per layer: the largest of a layer counts"));
  return per_tensor(converted);
}

// The draft layers of both sides, those of A first. REQUIRES comparable sides.
std::vector<DraftDiff> diff_drafts(const KvScales& a, const KvScales& b,
                                   const std::function<bool(const ScalePair&)>& same) {
  std::vector<DraftDiff> drafts;
  for (const DraftScales& draft : a.drafts) drafts.push_back({draft.layer, draft.scales, {}, true});
  for (const DraftScales& draft : b.drafts) {
    const auto known = std::find_if(drafts.begin(), drafts.end(),
                                    [&](const auto& each) { return each.layer == draft.layer; });
    if (known == drafts.end()) {
      drafts.push_back({draft.layer, {}, draft.scales, true});
      continue;
    }
    known->b = draft.scales;
    const auto alike = [&](const std::vector<float>& x, const std::vector<float>& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](float of_a, float of_b) {
        return same({of_a, of_b});
      });
    };
    known->differs = !alike(known->a.k, known->b.k) || !alike(known->a.v, known->b.v);
  }
  return drafts;
}

// Adds scales of Q if they are known; otherwise adds a note.
KvScales with_known_q(const KvScales& scales, const char* name, ScaleDiff& diff) {
  try {
    return with_q_scales(scales, name);
  } catch (const Error&) {
    diff.notes.push_back(cat(name, " has no scales of Q: those of the other were not compared"));
    return scales;
  }
}

std::optional<QDiff> diff_q(const KvScales& a, const KvScales& b, ScaleDiff& diff,
                            const std::function<bool(const ScalePair&)>& same) {
  if (!has_q_scales(a) && !has_q_scales(b)) return std::nullopt;
  const KvScales left = with_known_q(a, "A", diff), right = with_known_q(b, "B", diff);
  if (!has_q_scales(left) || !has_q_scales(right)) return std::nullopt;
  QDiff found;
  for (size_t layer = 0; layer < std::min(left.layers.size(), right.layers.size()); ++layer) {
    if (!left.layers[layer].has_cache()) continue;
    const ScalePair pair{left.layers[layer].q[0], right.layers[layer].q[0]};
    found.differing += !same(pair);
    const auto far = [](const ScalePair& of) { return std::abs(std::log(of.ratio())); };
    if (found.layers++ > 0 && far(pair) <= far(found.farthest)) continue;
    found.farthest = pair;
    found.farthest_layer = layer;
  }
  return found;
}

}  // namespace

ScaleDiff diff_scales(const KvScales& a, const KvScales& b, double tolerance) {
  if (stored_format(a.format) != stored_format(b.format)) {
    throw Error(cat("A is for ", format_name(a.format), " and B for ", format_name(b.format),
                    ": their scales cannot be compared"),
                "compare scales for one format");
  }
  check_same_layers(a, b);
  ScaleDiff diff;
  const bool mixed = a.per_head() != b.per_head();
  const KvScales left = comparable(a, "A", mixed, diff);
  const KvScales right = comparable(b, "B", mixed, diff);
  diff.per_head = left.per_head();
  diff.layers = left.cached_layers();
  const auto same = [&](const ScalePair& pair) {
    return is_same(pair) || are_neighbours(pair) || std::abs(pair.ratio() - 1) <= tolerance;
  };
  Sides sides;
  for (size_t layer = 0; layer < std::max(left.layers.size(), right.layers.size()); ++layer) {
    if (layer >= left.layers.size() || !left.layers[layer].has_cache()) {
      diff.without_cache.push_back(layer);
      continue;
    }
    bool differs = false, neighbours = false;
    const LayerScales &x = left.layers[layer], &y = right.layers[layer];
    if (x.k.size() != y.k.size()) fail_apart("KV head", x.k.size(), y.k.size());
    for (size_t head = 0; head < x.k.size(); ++head) {
      DiffRow row{layer, head, {x.k[head], y.k[head]}, {x.v[head], y.v[head]}, false};
      row.differs = !same(row.k) || !same(row.v);
      differs = differs || row.differs;
      neighbours = neighbours || are_neighbours(row.k) || are_neighbours(row.v);
      sides.k.push_back(row.k);
      sides.v.push_back(row.v);
      if (diff.rows.empty() || distance(row) > distance(diff.farthest)) diff.farthest = row;
      diff.rows.push_back(row);
    }
    diff.differing_layers += differs;
    diff.last_place_layers += !differs && neighbours;
  }
  diff.findings = findings_of(sides);
  diff.drafts = diff_drafts(left, right, same);
  diff.q = diff_q(left, right, diff, same);
  return diff;
}

}  // namespace fp8kv
