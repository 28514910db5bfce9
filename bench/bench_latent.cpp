// Two ways to compute prompts of latent attention. Absorbed: queries are projected into the
// latent's space and attend to the cache as it is. Expanded: the latents first become K and V of
// every head, as in training. With the heads of DeepSeek V2 Lite, one sequence in one step.
#include <cstdio>
#include <string>

#include "cpu_bench.h"

namespace fp8kv::bench {
namespace {

constexpr int64_t kHeads = 16, kNope = 128, kRope = 64, kV = 128, kRank = 512;
constexpr int64_t kQ = kNope + kRope, kLatent = kRope + kRank;

// K and V of `n` tokens.
PagedKv paged(const Tensor& k, std::byte* v, int32_t heads, int64_t head_dim, int64_t v_dim) {
  PagedKv kv;
  kv.k = k.view().data;
  kv.v = v;
  kv.k_format = kv.v_format = KvFormat::f32;
  kv.page_size = kPageSize;
  kv.n_kv_heads = heads;
  kv.head_dim = static_cast<int32_t>(head_dim);
  kv.v_in_k = static_cast<int32_t>(v_dim);
  return kv;
}

// Seconds of a prompt of n tokens, absorbed: from Q and the latents to the heads' outputs.
double absorbed_time(Backend& backend, int32_t n) {
  const Sequences prompt = make_sequences(backend, 1, n, n);
  const auto random = [&](DType dtype, const Shape& shape) {
    return random_tensor(backend, dtype, shape);
  };
  const Tensor k_up = random(DType::bf16, {kHeads, kRank, kNope});
  const Tensor v_up = random(DType::bf16, {kHeads, kV, kRank});
  const Tensor heads = random(DType::f32, {n, kHeads, kQ}),
               q = random(DType::f32, {n, kHeads, kLatent});
  const Tensor pool = random(DType::f32, {n, kLatent});
  const Tensor attended = random(DType::f32, {n, kHeads, kRank}),
               out = random(DType::f32, {n, kHeads, kV});
  const PagedKv kv = paged(pool, pool.view().data + kRope * 4, 1, kLatent, kRank);
  return best_time(kSeconds, [&] {
    backend.copy_columns({heads.view(), kNope}, {q.view(), 0}, kRope);
    backend.linear_heads({heads.view(), 0}, k_up.view(), {q.view(), kRope});
    backend.attention(q.view(), kv, prompt.batch(), {0.07f, 0}, attended.view());
    backend.linear_heads({attended.view(), 0}, v_up.view(), {out.view(), 0});
  });
}

// Seconds of the same prompt, expanded: kv_b_proj makes K and V of all latents. Leaves out copying
// the rotated part to every head, which favours this way.
double expanded_time(Backend& backend, int32_t n) {
  const Sequences prompt = make_sequences(backend, 1, n, n);
  const auto random = [&](DType dtype, const Shape& shape) {
    return random_tensor(backend, dtype, shape);
  };
  const Tensor kv_b = random(DType::bf16, {kHeads * (kNope + kV), kRank});
  const Tensor latents = random(DType::f32, {n, kRank});
  const Tensor expanded = random(DType::f32, {n, kHeads * (kNope + kV)});
  const Tensor q = random(DType::f32, {n, kHeads, kQ}), out = random(DType::f32, {n, kHeads, kV});
  const Tensor k = random(DType::f32, {n, kHeads, kQ}), v = random(DType::f32, {n, kHeads, kQ});
  const PagedKv kv = paged(k, v.view().data, kHeads, kQ, kV);
  const Projection projection{kv_b.view(), {}, expanded.view()};
  return best_time(kSeconds, [&] {
    backend.linear(latents.view(), std::span(&projection, 1));
    backend.attention(q.view(), kv, prompt.batch(), {0.07f, 0}, out.view());
  });
}

}  // namespace

void bench_latent(Backend& backend, const Limits& limits) {
  for (const int32_t n : {512, 1024, 2048}) {
    const double absorbed = absorbed_time(backend, n), expanded = expanded_time(backend, n);
    const double pairs = 0.5 * n * (n + 1), rows = n;
    const double products = rows * kHeads * kRank * (kNope + kV);
    const std::string name = "latent, prompt of " + std::to_string(n) + ", 16 heads, ";
    print_row(name + "absorbed", 2 * (products + pairs * kHeads * (kLatent + kRank)) / absorbed,
              "GFLOP/s", limits.peak_f32 * limits.threads, "peak multiply-add");
    print_row(name + "expanded", 2 * (products + pairs * kHeads * (kQ + kV)) / expanded, "GFLOP/s",
              limits.peak_f32 * limits.threads, "peak multiply-add");
    std::printf("  %.1f ms and %.1f ms: expanded %.2f times as fast\n", 1e3 * absorbed,
                1e3 * expanded, absorbed / expanded);
  }
}

}  // namespace fp8kv::bench
