// Chooses experts: one warp for each row of logits, so that lanes agree in registers and a few
// shared numbers.
#include "core/numbers/hd.h"
#include "kernels/blocks/elements.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/launch_experts.h"

namespace fp8kv::FP8KV_GPU {
namespace {

struct Best {
  float value;
  int index;  // -1: there is none
};

// The larger value; among equals, the one with the lower index.
__device__ inline Best better(Best a, Best b) {
  if (b.index < 0) return a;
  if (a.index < 0 || b.value > a.value || (b.value == a.value && b.index < a.index)) return b;
  return a;
}

// The largest value that is not taken, the first among equals, in every lane.
__device__ inline Best best_of(const float* values, const uint32_t* taken, int count) {
  Best best{0.0f, -1};
  for (int i = lane_index(); i < count; i += kWarp) {
    if (taken[i] == 0) best = better(best, {values[i], i});
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    best = better(best, {warp_xor(best.value, mask), warp_xor(best.index, mask)});
  }
  return best;
}

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp_exact(-x));
}

__device__ inline float softplus(float x) {
  return x > 20.0f ? x : log1p_exact(exp_exact(x));
}

// The score of a logit by itself, where a router has no softmax.
__device__ inline bool is_by_itself(RouterScore score) {
  return score == RouterScore::sigmoid || score == RouterScore::sqrt_softplus;
}
__device__ inline float score_of(RouterScore score, float logit) {
  if (score == RouterScore::sigmoid) return sigmoid(logit);
  const float x = softplus(logit);
  return x == 0.0f ? x : x * rsqrt_exact(x);
}

// The share of logit x in a softmax is exp(x - most) / sum.
struct Softmax {
  float most = 0.0f;
  float sum = 1.0f;
};

// Every lane gets the result.
__device__ inline Softmax softmax_of(const float* logits, int count) {
  float part = logits[0];
  for (int i = lane_index(); i < count; i += kWarp) part = fmaxf(part, logits[i]);
  Softmax softmax{warp_max(part), 0.0f};
  for (int i = lane_index(); i < count; i += kWarp) {
    softmax.sum += exp_exact(logits[i] - softmax.most);
  }
  softmax.sum = warp_sum(softmax.sum);
  return softmax;
}

// A warp's working memory, in shared memory.
struct RouterRow {
  float* choice;    // [experts]: scores that decide the choice
  uint32_t* taken;  // [experts]: already chosen, or excluded
  float* worth;     // [groups]
  uint32_t* kept;   // [groups]
  int* chosen;      // [per_token], the best first; the same in rising order
  int* ids;         // [per_token]
  float* weights;   // [per_token]
};

FP8KV_HD size_t aligned_floats(int64_t count) {
  return (static_cast<size_t>(count) + 3) / 4 * 4;
}

size_t shared_floats(const RouteArguments& args) {
  return 2 * aligned_floats(args.count) + 2 * aligned_floats(args.groups) +
         3 * aligned_floats(args.per_token);
}

// Marks the experts of all groups but the best ones as taken.
__device__ inline void take_groups(const RouteArguments& args, const RouterRow& row) {
  const int size = args.count / args.groups;
  for (int g = lane_index(); g < args.groups; g += kWarp) {
    float first = row.choice[g * size], second = row.choice[g * size + 1];
    if (second > first) {
      const float other = first;
      first = second;
      second = other;
    }
    for (int i = g * size + 2; i < (g + 1) * size; ++i) {
      const float value = row.choice[i];
      if (value > first) {
        second = first;
        first = value;
      } else if (value > second) {
        second = value;
      }
    }
    row.worth[g] = args.group_worth == GroupWorth::largest ? first : first + second;
    row.kept[g] = 0;
  }
  block_sync();
  for (int i = 0; i < args.groups_kept; ++i) {
    const Best best = best_of(row.worth, row.kept, args.groups);
    block_sync();
    if (lane_index() == 0) row.kept[best.index] = 1;
    block_sync();
  }
  for (int i = lane_index(); i < args.count; i += kWarp) row.taken[i] = row.kept[i / size] == 0;
  block_sync();
}

// Computes the weights of sparse_mixer, in the order of row.ids.
__device__ inline void weigh_near(const RouteArguments& args, const float* logits,
                                  const RouterRow& row) {
  for (int rank = 0; rank < args.per_token; ++rank) {
    const int best = row.chosen[rank];
    const float most = logits[best];
    float part = 0.0f;
    for (int i = lane_index(); i < args.count; i += kWarp) {
      bool apart = (most - logits[i]) / fmaxf(fabsf(logits[i]), most) > args.near;
      for (int earlier = 0; earlier < rank; ++earlier) apart |= row.chosen[earlier] == i;
      if (!apart) part += exp_exact(logits[i] - most);
    }
    const float sum = warp_sum(part);
    int place = 0;
    for (int other = 0; other < args.per_token; ++other) {
      place += row.chosen[other] < best ? 1 : 0;
    }
    if (lane_index() == 0) row.weights[place] = args.scale / sum;
  }
  block_sync();
}

// Computes the weights of the chosen experts, in the order of row.ids.
__device__ inline void weigh(const RouteArguments& args, const float* logits,
                             const RouterRow& row) {
  if (args.score == RouterScore::sparse_mixer) return weigh_near(args, logits, row);
  const int k = args.per_token;
  float most = logits[row.ids[0]];
  for (int j = 1; j < k; ++j) most = fmaxf(most, logits[row.ids[j]]);
  for (int j = lane_index(); j < k; j += kWarp) {
    const float logit = logits[row.ids[j]];
    row.weights[j] =
        is_by_itself(args.score) ? score_of(args.score, logit) : exp_exact(logit - most);
  }
  block_sync();
  float sum = 0.0f;  // over the chosen experts, in their order
  for (int j = 0; j < k; ++j) sum += row.weights[j];
  float divisor = 1.0f;
  if (args.score == RouterScore::softmax_of_chosen) divisor = sum;
  if (args.score == RouterScore::softmax) {
    float part = 0.0f;
    for (int i = lane_index(); i < args.count; i += kWarp) part += exp_exact(logits[i] - most);
    divisor = warp_sum(part);
  }
  // Normalising divides by the sum of the weights, so the earlier divisor cancels.
  if (args.normalise) divisor = sum + args.epsilon * divisor;
  block_sync();
  for (int j = lane_index(); j < k; j += kWarp)
    row.weights[j] = row.weights[j] / divisor * args.scale;
  block_sync();
}

// Chooses the experts with the best scores, and sorts them.
__device__ inline void choose_experts(const RouteArguments& args, const RouterRow& row) {
  const int k = args.per_token;
  for (int j = 0; j < k; ++j) {
    const Best best = best_of(row.choice, row.taken, args.count);
    block_sync();
    if (lane_index() == 0) {
      row.chosen[j] = best.index;
      row.taken[best.index] = 1;
    }
    block_sync();
  }
  for (int j = lane_index(); j < k; j += kWarp) {
    int rank = 0;
    for (int other = 0; other < k; ++other) rank += row.chosen[other] < row.chosen[j] ? 1 : 0;
    row.ids[rank] = row.chosen[j];
  }
  block_sync();
}

// One block of one warp per row.
template <typename T>
__global__ void route_kernel(RouteArguments args) {
  after_previous();
  Shared shared;
  const int count = args.count, k = args.per_token;
  RouterRow row;
  row.choice = shared.take<float>(aligned_floats(count));
  row.taken = shared.take<uint32_t>(aligned_floats(count));
  row.worth = shared.take<float>(aligned_floats(args.groups));
  row.kept = shared.take<uint32_t>(aligned_floats(args.groups));
  row.chosen = shared.take<int>(aligned_floats(k));
  row.ids = shared.take<int>(aligned_floats(k));
  row.weights = shared.take<float>(aligned_floats(k));
  const int64_t index = block_index().x;
  const float* logits = args.logits + index * count;
  // Softmax keeps the order of the logits. So the logits themselves are compared, unless a bias is
  // added to the softmax.
  const bool shares = args.score == RouterScore::softmax && args.choice_bias != nullptr;
  const Softmax softmax = shares ? softmax_of(logits, count) : Softmax{};
  bool invalid = false;
  for (int i = lane_index(); i < count; i += kWarp) {
    float choice = is_by_itself(args.score) ? score_of(args.score, logits[i]) : logits[i];
    if (shares) choice = exp_exact(choice - softmax.most) / softmax.sum;
    if (args.choice_bias != nullptr) choice += static_cast<const T*>(args.choice_bias)[i].value();
    invalid = invalid || !(choice == choice);
    row.choice[i] = choice;
    row.taken[i] = 0;
  }
  const bool valid = warp_ballot(invalid) == 0;
  block_sync();
  int32_t* ids = args.ids + index * k;
  float* weights = args.weights + index * k;
  if (valid && args.given != nullptr) {
    for (int j = lane_index(); j < k; j += kWarp) row.ids[j] = args.given[index * k + j];
    block_sync();
    weigh(args, logits, row);
  } else if (valid) {
    if (args.groups > 1) take_groups(args, row);
    choose_experts(args, row);
    weigh(args, logits, row);
  }
  for (int j = lane_index(); j < k; j += kWarp) {
    ids[j] = valid ? row.ids[j] : j;
    float weight = valid ? row.weights[j] : float_from_bits(0x7FC00000u);
    if (args.factors != nullptr) weight *= static_cast<const T*>(args.factors)[ids[j]].value();
    weights[j] = weight;
    if (args.counts != nullptr) atomic_add(args.counts + ids[j], 1);
  }
}

}  // namespace

void route(Stream stream, int64_t n, const RouteArguments& arguments) {
  with_compute_type(arguments.terms_dtype, [&]<typename T>(T) {
    launch("route", route_kernel<T>, {static_cast<unsigned>(n)}, kWarp,
           shared_floats(arguments) * sizeof(float), stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
