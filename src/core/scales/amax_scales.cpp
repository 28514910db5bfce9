#include "core/scales/amax_scales.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

// A scale is the F32 of amax / 448, times a headroom. Older versions multiplied amax by the F32 of
// 1/448, which gives the same number or its neighbour, at most 2^-23 away (tried for all 2^23
// significands). Multiplying by the headroom rounds both once more, by 2^-24 of their size: 2^-22
// in all.
constexpr double kRounding = 0x1p-22;
constexpr double kOctavesOfLeastSquares = 4;  // the range that policy/policies.cpp searches

// The scales that a policy allows, relative to amax / 448 times the headroom.
struct Bounds {
  double least = 1, most = 1;
  bool shared = false;  // K and V have one scale
  bool one = false;     // 1, whatever the amax
  bool or_one = false;
};

// Returns nullopt for an unknown policy.
std::optional<Bounds> bounds_of(const KvScales& scales) {
  const std::string& policy = scales.provenance.policy;
  const std::string_view name = std::string_view(policy).substr(0, policy.find('*'));
  Bounds bounds{.shared = scales.latent};
  if (name.empty() || name == "amax" || name == "head") return bounds;
  if (name == "shared") {
    bounds.shared = true;
    return bounds;
  }
  if (name == "unit") {
    bounds.one = true;
    return bounds;
  }
  if (name == "loss" || name == "head-loss") {
    bounds.most = 2;  // the next power of two above
    return bounds;
  }
  if (name == "mse") {
    bounds.most = std::exp2(kOctavesOfLeastSquares);
    bounds.least = 1 / bounds.most;
    return bounds;
  }
  if (name.size() > 1 && name[0] == 'p' && name[1] >= '0' && name[1] <= '9') {
    bounds.least = 0;
    bounds.or_one = true;
    return bounds;
  }
  return std::nullopt;
}

bool is_power_of_two(float value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5f;
}

double headroom_of(const Provenance& from) {
  const size_t star = from.policy.find('*');
  double factor = from.headroom;
  if (star != from.policy.npos) {
    std::from_chars(from.policy.data() + star + 1, from.policy.data() + from.policy.size(), factor);
  }
  return factor;
}

class FollowsAmax {
 public:
  FollowsAmax(const KvScales& scales, const Bounds& bounds, const std::string& source)
      : scales_(scales),
        bounds_(bounds),
        headroom_(headroom_of(scales.provenance)),
        source_(source) {}

  void check(const std::string& layer, const LayerScales& found, const LayerAmax& amax) const {
    if (!found.has_cache()) return;
    const auto of = [&](const std::vector<float>& own) {
      if (!bounds_.shared) return own;
      std::vector<float> both = own;
      for (size_t i = 0; i < both.size(); ++i) {
        both[i] = std::max(amax.k[i], i < amax.v.size() ? amax.v[i] : 0.0f);
      }
      return both;
    };
    check(layer + ", K", found.k, of(amax.k));
    check(layer + ", V", found.v, of(amax.v));
  }

 private:
  void check(const std::string& where, const std::vector<float>& scales,
             const std::vector<float>& amax) const {
    if (scales.size() == 1) return check(where, scales[0], largest(amax));
    for (size_t head = 0; head < std::min(scales.size(), amax.size()); ++head) {
      check(cat(where, ", head ", head), scales[head], amax[head]);
    }
  }

  void check(const std::string& where, float scale, float amax) const {
    const float made = bounds_.one ? 1.0f : scale_from_amax(amax, scales_.format, headroom_);
    const double least = made * bounds_.least * (1 - kRounding);
    const double most = made * bounds_.most * (1 + kRounding);
    if (least <= scale && scale <= most) return;
    if (is_power_of_two(scale) && least <= scale && scale < 2 * most) return;
    if (bounds_.or_one && scale == scale_from_amax(0, scales_.format, 1)) return;
    const std::string& policy = scales_.provenance.policy;
    const std::string expected = bounds_.least == bounds_.most ? cat("gives ", made)
                                 : bounds_.least == 0          ? cat("gives ", made, " at most")
                                                               : cat("gives ", least, " to ", most);
    throw Error(cat(source_, ": ", where, ": the scale is ", scale, ", but its amax of ", amax,
                    policy.empty() ? "" : cat(" by the policy ", quote(policy)), " ", expected),
                "the file was edited: calibrate again; where that scale is wanted, take 'amax' "
                "out of the file's 'fp8kv' object, and the scale stands for itself");
  }

  const KvScales& scales_;
  const Bounds bounds_;
  const double headroom_;
  const std::string& source_;
};

}  // namespace

void check_follows_amax(const KvScales& scales, const std::string& source) {
  const std::optional<Bounds> bounds = bounds_of(scales);
  if (!bounds) return;
  const FollowsAmax follows(scales, *bounds, source);
  const size_t n_layers = std::min(scales.layers.size(), scales.provenance.amax.size());
  for (size_t layer = 0; layer < n_layers; ++layer) {
    follows.check(cat("layer ", layer), scales.layers[layer], scales.provenance.amax[layer]);
  }
  for (const DraftScales& draft : scales.drafts) {
    if (draft.amax.k.empty()) continue;
    follows.check(cat("draft layer ", draft.layer), draft.scales, draft.amax);
  }
}

}  // namespace fp8kv
