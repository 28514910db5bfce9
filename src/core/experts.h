// A feed-forward part of several experts, of which each token is sent to a few: as data, for the
// config and for the op that chooses.
#pragma once

#include <cstdint>
#include <optional>

namespace fp8kv {

// What a router makes of its logits, one for each expert.
enum class RouterScore {
  softmax,            // over all experts; the likeliest are chosen
  softmax_of_chosen,  // the largest logits are chosen, and the softmax is over these alone
  sigmoid             // of each logit by itself
};

// What a group of experts is worth.
enum class GroupWorth {
  two_largest,  // the sum of its two largest scores
  largest       // its largest score: DeepSeek V2
};

// How a token's experts are chosen, and how much each counts.
struct Routing {
  int64_t per_token = 0;  // experts that are chosen
  RouterScore score = RouterScore::softmax;
  bool normalise = false;  // the weights of the chosen are divided by their sum
  double epsilon = 0.0;    // which this is added to
  double scale = 1.0;      // multiplies the weights at the end
  // Experts are in so many groups of neighbours, and chosen from the best of these alone. With one
  // group all experts take part.
  int64_t groups = 1;
  int64_t groups_kept = 1;
  GroupWorth group_worth = GroupWorth::two_largest;
  bool weigh_input = false;  // weights multiply what goes into an expert, not what it gives
};

// What gate and up of an expert become: with g = min(gate, limit) and u = up within +-limit,
// g * sigmoid(alpha * g) * (u + 1).   NaN stays NaN.
struct ClampedSwiglu {
  float alpha = 1.702f;
  float limit = 7.0f;
};

struct ExpertsConfig {
  int64_t count = 0;
  int64_t hidden_dim = 0;  // of each expert
  // What the experts but the shared one read and give is so wide, with a product before and one
  // behind them; 0: as wide as the stream. Nemotron 3
  int64_t inner_dim = 0;
  Routing routing;
  bool choice_bias = false;  // added to scores while experts are chosen, but not to their weights
  // An expert beside the others that takes every token; 0: there is none.
  int64_t shared_hidden_dim = 0;
  bool shared_gated = false;  // its output is multiplied by the sigmoid of a product of its own
  bool bias = false;          // of the router, and of all matrices of the experts but the shared
  // The dense part is there too. Both read the stream, and what they give is added up, each with a
  // norm of its own: Gemma 4.
  bool beside_dense = false;
  bool router_norm = false;  // the router has a norm of the stream to itself, times 1 / sqrt(dim)
  bool factors = false;      // an expert's weight is multiplied by a number of its own at the end
  std::optional<ClampedSwiglu> swiglu = {};  // of the experts, in place of the model's activation
};

}  // namespace fp8kv
