// Mixture of experts: a feed-forward part of several experts, which sends each token to a few of
// them. Described as data for the config and for the op that routes.
#pragma once

#include <cstdint>

namespace fp8kv {

// How a router turns its logits, one for each expert, into scores.
enum class RouterScore {
  softmax,            // over all experts; the largest are chosen
  softmax_of_chosen,  // the largest logits are chosen, then a softmax over those alone
  sigmoid,            // of each logit separately
  sqrt_softplus,      // likewise: DeepSeek V4
  // The largest logits are chosen, one after another. The weight of each is its share in a softmax
  // over the logits near it that are not chosen yet: see Routing::near. Phi-3.5-MoE
  sparse_mixer
};

// How a group of experts is ranked against the other groups.
enum class GroupWorth {
  two_largest,  // the sum of its two largest scores
  largest       // its largest score: DeepSeek V2
};

// How a token's experts are chosen and weighted.
struct Routing {
  int64_t per_token = 0;  // experts chosen for each token
  RouterScore score = RouterScore::softmax;
  // For sparse_mixer, with m as the chosen logit: a logit x is near if (m - x) / max(|x|, m) is not
  // above this.
  double near = 0.0;
  bool normalise = false;  // the chosen experts' weights are divided by their sum
  double epsilon = 0.0;    // added to that sum
  double scale = 1.0;      // multiplies the final weights
  // Group-limited routing: experts form this many groups of neighbours, and only the best groups
  // take part. With one group all experts take part.
  int64_t groups = 1;
  int64_t groups_kept = 1;
  GroupWorth group_worth = GroupWorth::two_largest;
  bool weigh_input = false;  // weights multiply an expert's input instead of its output
};

struct ExpertsConfig {
  int64_t count = 0;       // with matrices
  int64_t hidden_dim = 0;  // hidden width of each expert
  // The routed experts work at this width, between one product that narrows their input and one
  // that widens their output. 0: they work at the width of the stream. Nemotron 3
  int64_t inner_dim = 0;
  bool inner_norm = false;      // their narrowed input is normed: Muse Spark. REQUIRES inner_dim
  bool inner_out_norm = false;  // so is their sum, before it is widened: Kimi K3
  // The output of each expert is normed before the router's weight: times the norm's weights, then
  // divided by the root mean square. Muse Spark
  bool each_norm = false;
  double logit_multiplier = 1.0;  // multiplies the router's logits
  Routing routing;
  bool choice_bias = false;  // a bias that affects which experts are chosen, but not their weights
  // The hidden width of the shared expert, which takes every token. 0: there is none.
  int64_t shared_hidden_dim = 0;
  // The last of `count` experts, which every token goes to. The router weighs them like the chosen
  // ones, and Routing::per_token counts them. REQUIRES choice_bias: Inkling.
  int64_t fixed = 0;
  bool shared_gated = false;  // its output is multiplied by the sigmoid of its own product
  bool bias = false;          // the router and all matrices of the routed experts have biases
  // The layer has a dense feed-forward part too. Both parts read the stream, and each has its own
  // norm before the outputs are added: Gemma 4.
  bool beside_dense = false;
  bool router_norm = false;  // the router norms the stream itself, and multiplies by 1 / sqrt(dim)
  bool f32_router = false;   // the files have routers in F32 beside weights in 16 bits
  bool factors = false;      // each expert's final weight is multiplied by the expert's own number
  double multiplier = 1.0;   // multiplies the output of routed and shared experts together
  bool post_norm = false;    // that output is normed before it joins the stream: A.X K1
  // In the first layers a table gives the experts of each token id. The router weighs them, and has
  // no choice bias there: DeepSeek V4
  int64_t table_layers = 0;
  // Experts without matrices, with the numbers behind the others. They return their input: LongCat
  int64_t identities = 0;
  // The layer has a dense part too, which reads the same normed rows. The experts' output joins the
  // stream at the end of the next layer, which has no experts: LongCat
  bool shortcut = false;

  // The experts that a router chooses from.
  int64_t choices() const { return count + identities; }
};

}  // namespace fp8kv
