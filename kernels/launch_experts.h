// Launches of routers and experts. Callers have checked the arguments; pointers are the
// device's, and sizes are those of backend/backend.h.
#pragma once

#include "core/model/block.h"
#include "core/model/experts.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {

// See Backend::route.
struct RouteArguments {
  const float* logits = nullptr;  // [n, count]
  // [count], both of one type; each may be null.
  const void* choice_bias = nullptr;
  const void* factors = nullptr;
  DType terms_dtype = DType::f32;
  int32_t* ids = nullptr;          // [n, per_token]
  float* weights = nullptr;        // [n, per_token]
  uint64_t* counts = nullptr;      // [count]; may be null
  const int32_t* given = nullptr;  // [n, per_token]: see RouterTerms; may be null
  int32_t count = 0;               // experts
  int32_t per_token = 0;
  RouterScore score = RouterScore::softmax;
  float near = 0.0f;  // see Routing
  bool normalise = false;
  float epsilon = 0.0f;
  float scale = 1.0f;
  int32_t groups = 1;
  int32_t groups_kept = 1;
  GroupWorth group_worth = GroupWorth::two_largest;
};

void route(Stream stream, int64_t n, const RouteArguments& arguments);

// Rows [first, end) of the sorted rows, all sent to one expert; -1: no rows.
struct ExpertTile {
  int32_t expert;
  int32_t first;
  int32_t end;
};

// Working memory of experts(). Sent rows are sorted by expert, which gives each a place.
struct ExpertScratch {
  int32_t* counts = nullptr;    // [experts]: rows sent to each
  int32_t* places = nullptr;    // [sent]: place of choice i % per_token of row i / per_token
  int32_t* rows = nullptr;      // [sent]: by place
  float* weights = nullptr;     // [sent]: factors of the experts' inputs, by place
  ExpertTile* tiles = nullptr;  // [tiles]
  void* hidden = nullptr;       // [sent, hidden_dim], x's type, by place
  float* made = nullptr;        // [sent, dim], by place
};

// See Backend::experts.
struct ExpertArguments {
  const void* x = nullptr;              // [n, dim]
  void* out = nullptr;                  // [n, dim], x's type
  const int32_t* ids = nullptr;         // [n, per_token]
  const float* weights = nullptr;       // [n, per_token]
  const uint64_t* addresses = nullptr;  // [3, experts], matrices of x's type; 0: no gate
  int64_t n = 0;
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  int64_t sent = 0;   // n * per_token
  int64_t tiles = 0;  // expert_tiles
  int32_t experts = 0;
  int32_t per_token = 0;
  bool weigh_input = false;
  bool gated = true;
  bool has_identities = false;  // ids may be above `experts`: see ExpertMatrices
  const void* biases[3] = {};   // gate, up and down, x's type: see ExpertBiases; may be null
  bool clamped = false;         // gate and up go through `swiglu`, not through the activation
  ClampedSwiglu swiglu;
  uint64_t* down_amax = nullptr;  // [experts]: see ExpertMatrices; may be null
  ExpertScratch scratch;
};

// The most tiles that this many sent rows can take.
int64_t expert_tiles(int64_t sent, int64_t experts);

void experts(Stream stream, DType dtype, Activation activation, const ExpertArguments& arguments);

}  // namespace fp8kv::FP8KV_GPU
