// Fused ops against their parts, which give the same bits: a layer's work before attention and
// before its last product. One row of a model of Llama 3 8B's shape.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gpu_bench.h"

namespace fp8kv::bench {
namespace {

// The row, and more sets of weights than the L2 cache holds.
class OneRow {
 public:
  explicit OneRow(const Bench& bench)
      : bench_(bench), x_(row(dim())), weight_(row(dim())), scratch_(row(dim())) {}

  int64_t dim() const { return bench_.quick ? 128 : 4096; }
  ConstTensorView x() const { return x_.view(); }
  InputNorm entry() const {
    return {Norm{.eps = 1e-5f, .weight = reshaped(weight_.view(), {dim()})}, scratch_.view()};
  }

  Tensor row(int64_t width) const { return random_tensor(bench_, DType::bf16, Shape{1, width}); }
  Tensor weights(int64_t out_dim) const {
    return random_tensor(bench_, DType::bf16, Shape{kSets * out_dim, dim()});
  }
  Linear set_of(const Tensor& weights, size_t i) const {
    const TensorView& all = weights.view();
    return {{all.data + i % kSets * (all.bytes() / kSets), all.dtype,
             Shape{all.shape[0] / kSets, dim()}},
            {}};
  }

  // `call(i, in_one)` enqueues the i-th run of `columns` columns.
  void print(const std::string& name, int64_t columns,
             const std::function<void(size_t, bool)>& call) const {
    const auto bytes = static_cast<double>(columns * dim()) * 2;
    for (const bool in_one : {true, false}) {
      const Timing timing = time_calls(bench_, [&](size_t i) { call(i, in_one); });
      print_row(cat(name, ", ", columns, " x ", dim(), in_one ? ", in one" : ", in parts"), timing,
                bytes, "GB/s", bench_.limits.read, "read");
    }
  }

 private:
  static constexpr int64_t kSets = 3;

  const Bench& bench_;
  Tensor x_, weight_, scratch_;
};

void bench_project_append(const Bench& bench, const OneRow& one) {
  const Heads heads = bench.quick ? Heads{4, 2, 64} : Heads{32, 8, 128};
  const std::vector<int32_t> lengths = {bench.quick ? 100 : 1024};
  const Step step = make_step(bench, lengths, 1, {0, pages_of(lengths)});
  const Pool pool(bench, DType::f8_e4m3, heads, pages_of(lengths));
  const int64_t q_dim = heads.q * heads.dim, kv_dim = int64_t{heads.kv} * heads.dim;
  const Tensor q = one.row(q_dim), k = one.row(kv_dim), v = one.row(kv_dim);
  const Tensor to_q = one.weights(q_dim), to_k = one.weights(kv_dim), to_v = one.weights(kv_dim);
  const Tensor rope = random_tensor(bench, DType::f32, Shape{lengths[0], heads.dim});
  const RopeAppend args{.q = reshaped(q.view(), {1, heads.q, heads.dim}),
                        .k = reshaped(k.view(), {1, heads.kv, heads.dim}),
                        .v = reshaped(v.view(), {1, heads.kv, heads.dim}),
                        .rope = rope.view(),
                        .batch = step.batch(),
                        .kv = pool.kv,
                        .round_to = DType::bf16,
                        .magnitudes = {}};
  one.print("norm, q k v, rope, append", q_dim + 2 * kv_dim, [&](size_t i, bool in_one) {
    const AttentionWeights weights{one.set_of(to_q, i), one.set_of(to_k, i), one.set_of(to_v, i)};
    in_one ? bench.backend.project_append(one.x(), one.entry(), weights, args)
           : bench.backend.Backend::project_append(one.x(), one.entry(), weights, args);
  });
}

void bench_hidden(const Bench& bench, const OneRow& one) {
  const int64_t hidden_dim = bench.quick ? 192 : 14336;
  const Tensor gate = one.row(hidden_dim), up = one.row(hidden_dim);
  const Tensor to_gate = one.weights(hidden_dim), to_up = one.weights(hidden_dim);
  one.print("norm, gate and up, silu", 2 * hidden_dim, [&](size_t i, bool in_one) {
    const Projection first{one.set_of(to_gate, i).weight, {}, gate.view()};
    const Projection second{one.set_of(to_up, i).weight, {}, up.view()};
    const HiddenProducts products{first, second, Activation::silu};
    in_one ? bench.backend.hidden(one.x(), one.entry(), products)
           : bench.backend.Backend::hidden(one.x(), one.entry(), products);
  });
}

}  // namespace

void bench_fused(const Bench& bench) {
  const OneRow one(bench);
  bench_project_append(bench, one);
  bench_hidden(bench, one);
}

}  // namespace fp8kv::bench
