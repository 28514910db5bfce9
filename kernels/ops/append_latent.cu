// Stores latents in blocks, after what rope_append does to Q, K and V.
#include "kernels/blocks/latent_blocks.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/rope.cuh"
#include "kernels/launch.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;
constexpr int kPerLane = kLatentBlock / kWarp;

// One warp per row and block of its latent, and one more for what is rotated of it.
template <typename T>
__global__ void append_latent_kernel(RopeArguments arguments) {
  after_previous();
  const PagedKv& kv = arguments.kv;
  const LatentBlocks blocks = kv.blocks();
  const int pieces = blocks.blocks() + 1;
  const int64_t item = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  if (item >= static_cast<int64_t>(arguments.rows.n) * pieces) return;
  const int64_t row = item / pieces;
  const auto piece = static_cast<int>(item % pieces);
  const int lane = lane_index();
  const int slot = arguments.rows.slots[row];
  uint8_t* token = block_token(kv, slot / kv.page_size, slot % kv.page_size);
  if (piece == blocks.blocks()) {
    const T* k = static_cast<const T*>(arguments.k) + row * blocks.rope_dim;
    auto* to = reinterpret_cast<Bf16*>(token + blocks.rope_at());
    for (int d = lane; d < blocks.rope_dim; d += kWarp) to[d] = Bf16::of(k[d].value());
    return;
  }
  const T* v = static_cast<const T*>(arguments.v) + row * blocks.rank + piece * kLatentBlock;
  float x[kPerLane];
  float amax = 0.0f;
  for (int j = 0; j < kPerLane; ++j) {
    x[j] = v[lane + j * kWarp].value();
    round_all<1>(x + j, arguments.round_to);
    amax = fmaxf(amax, fabsf(x[j]));
  }
  const float scale = latent_block_scale(warp_max(amax));
  auto* codes = reinterpret_cast<BlockCode*>(token + piece * kLatentBlock);
  for (int j = 0; j < kPerLane; ++j) codes[lane + j * kWarp] = BlockCode::of(x[j] / scale);
  if (lane == 0) reinterpret_cast<float*>(token + blocks.scales_at())[piece] = scale;
}

}  // namespace

void append_latent(Stream stream, DType activations, const RopeArguments& arguments) {
  with_compute_type(activations, [&]<typename T>(T) {
    const int64_t pieces = arguments.kv.blocks().blocks() + 1;
    const int64_t items = arguments.rows.n * pieces;
    launch("rope_append", append_latent_kernel<T>,
           {static_cast<unsigned>((items + kWarps - 1) / kWarps)}, kWarps * kWarp, 0, stream,
           arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
