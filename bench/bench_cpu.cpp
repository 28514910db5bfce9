// Speed of the CPU backend's ops, each beside the limit that this machine sets it.
// usage: fp8kv_bench_cpu [threads [part]]     part: linear, coded, experts, attention, latent,
// rope,
//                                           states
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/isa/cpu_isa.h"
#include "base/machine/cpu_topology.h"
#include "base/rng.h"
#include "cpu_bench.h"

namespace fp8kv::bench {
namespace {

// Peak FLOP/s of one core for products with weights of a type.
double peak_of(const Limits& limits, DType weights) {
  if (weights == DType::bf16) return limits.peak_bf16;
  return weights == DType::f16 ? limits.peak_f16 : limits.peak_f32;
}

void bench_linear(Backend& backend, const Limits& limits) {
  constexpr int64_t kIn = 4096, kOut = 11008;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const Tensor weight = random_tensor(backend, dtype, Shape{kOut, kIn});
    for (const int64_t rows : {1, 4, 16, 64, 512}) {
      const Tensor x = random_tensor(backend, DType::f32, Shape{rows, kIn});
      const Tensor out = backend.allocate(DType::f32, Shape{rows, kOut});
      const Projection projection{weight.view(), {}, out.view()};
      const double time =
          best_time(kSeconds, [&] { backend.linear(x.view(), std::span(&projection, 1)); });
      const double flop = 2.0 * static_cast<double>(rows * kIn * kOut);
      const auto bytes = static_cast<double>(weight.view().bytes());
      const double peak = peak_of(limits, dtype) * limits.threads;
      const std::string name = "linear " + std::string(dtype_name(dtype)) + " 11008 x 4096, " +
                               std::to_string(rows) + " rows";
      if (flop / peak > bytes / limits.bandwidth) {
        print_row(name, flop / time, "GFLOP/s", peak, "peak multiply-add");
      } else {
        print_row(name, bytes / time, "GB/s", limits.bandwidth, "memory read");
      }
    }
  }
}

// Codes of FP8 weights whose largest is the largest FP8 number: few are subnormal, none is NaN.
Tensor random_codes(Backend& backend, const Shape& shape) {
  Tensor codes = backend.allocate(DType::f8_e4m3, shape);
  const Tensor values = random_tensor(backend, DType::f32, shape);
  const float* from = values.view().as<float>();
  for (int64_t i = 0; i < shape.elements(); ++i) {
    codes.view().as<uint8_t>()[i] = fp8_encode<Fp8Format::e4m3fn>(from[i] * 2 * 448);
  }
  return codes;
}

// Products with codes in the layouts of FP8 and INT4 checkpoints, beside the bytes that they read.
void bench_coded(Backend& backend, const Limits& limits) {
  constexpr int64_t kIn = 4096, kOut = 11008, kGroup = 128;
  QuantisedMatrix fp8;
  fp8.scale_dtype = DType::bf16;
  fp8.rows = kOut;
  fp8.columns = kIn;
  fp8.block_columns = kIn;
  fp8.row_step = 1;
  QuantisedMatrix blocks = fp8;
  blocks.scale_dtype = DType::f32;
  blocks.block_rows = kGroup;
  blocks.block_columns = kGroup;
  blocks.n_groups = blocks.row_step = kIn / kGroup;
  blocks.group_step = 1;
  QuantisedMatrix int4 = blocks;
  int4.codes_as = WeightCodes::words;
  int4.bits = 4;
  int4.zeros_as = ZeroPoints::middle;
  int4.scale_dtype = DType::f16;
  int4.block_rows = 1;
  const struct {
    const char* name;
    QuantisedMatrix matrix;
    DType compute;
  } kForms[] = {{"FP8, a scale a row", fp8, DType::bf16},
                {"FP8, blocks of 128", blocks, DType::bf16},
                {"INT4, groups of 128", int4, DType::bf16},
                {"INT4, computed in F16", int4, DType::f16}};
  for (auto [name, matrix, compute] : kForms) {
    const Tensor codes = random_codes(backend, Shape{kOut, kIn * matrix.bits / 8});
    const int64_t n_scales = (kOut + matrix.block_rows - 1) / matrix.block_rows * matrix.n_groups;
    const Tensor scales = random_tensor(backend, matrix.scale_dtype, Shape{n_scales});
    matrix.codes = codes.view().data;
    matrix.scales = scales.view().data;
    std::vector<Tensor> storage;
    const Shape shape{kOut, kIn};
    const Tensor decoded = backend.allocate(compute, shape);
    const double decoding =
        best_time(kSeconds, [&] { backend.decode_weights(matrix, decoded.view()); });
    print_row(std::string("decode ") + name, static_cast<double>(decoded.view().bytes()) / decoding,
              "GB/s", limits.bandwidth, "memory read");
    for (const int64_t rows : {1, 4, 16, 512}) {
      const Tensor x = random_tensor(backend, DType::f32, Shape{rows, kIn});
      const Tensor out = backend.allocate(DType::f32, Shape{rows, kOut});
      const Projection projection{{nullptr, compute, shape},
                                  {},
                                  out.view(),
                                  false,
                                  backend.in_place(matrix, compute, WeightUse::linear, storage)};
      const double time =
          best_time(kSeconds, [&] { backend.linear(x.view(), std::span(&projection, 1)); });
      const std::string row = std::string("linear ") + name + ", " + std::to_string(rows) + " rows";
      if (rows > 16) {
        const double peak = peak_of(limits, compute) * limits.threads;
        print_row(row, 2.0 * static_cast<double>(rows * kIn * kOut) / time, "GFLOP/s", peak,
                  "peak multiply-add");
      } else {
        const auto bytes = static_cast<double>(codes.view().bytes() + scales.view().bytes());
        print_row(row, bytes / time, "GB/s", limits.bandwidth, "memory read");
      }
    }
  }
}

// Speed of all threads, as a share of the thread count times the speed of one.
void bench_scaling(const Limits& limits) {
  constexpr int64_t kIn = 4096, kOut = 11008, kRows = 512;
  double times[2];
  for (const bool all : {false, true}) {
    const auto backend = make_cpu_backend(all ? limits.threads : 1);
    const Tensor weight = random_tensor(*backend, DType::bf16, Shape{kOut, kIn});
    const Tensor x = random_tensor(*backend, DType::f32, Shape{kRows, kIn});
    const Tensor out = backend->allocate(DType::f32, Shape{kRows, kOut});
    const Projection projection{weight.view(), {}, out.view()};
    times[all] =
        best_time(2 * kSeconds, [&] { backend->linear(x.view(), std::span(&projection, 1)); });
  }
  std::printf("%-46s %8.2f of %d     %5.1f %%\n", "thread scaling, linear BF16, 512 rows",
              times[0] / times[1], limits.threads, 100 * times[0] / times[1] / limits.threads);
}

// A layer of Qwen3-MoE's shape with 16 experts, 4 of them active, beside a dense layer of the same
// work. The layer with experts reads up to four times as much.
void bench_experts(Backend& backend, const Limits& limits) {
  constexpr int64_t kDim = 2048, kHidden = 768, kExperts = 16, kActive = 4;
  const Shape in{kActive * kHidden, kDim}, out{kDim, kActive * kHidden};
  const Tensor gate = random_tensor(backend, DType::bf16, in);
  const Tensor up = random_tensor(backend, DType::bf16, in);
  const Tensor down = random_tensor(backend, DType::bf16, out);
  std::vector<Tensor> matrices;
  const Tensor addresses = backend.allocate(DType::u64, Shape{3, kExperts});
  for (int64_t i = 0; i < 3 * kExperts; ++i) {
    const Shape shape = i < 2 * kExperts ? Shape{kHidden, kDim} : Shape{kDim, kHidden};
    matrices.push_back(random_tensor(backend, DType::bf16, shape));
    addresses.view().as<uint64_t>()[i] = reinterpret_cast<uintptr_t>(matrices.back().view().data);
  }
  for (const int64_t rows : {8, 64, 512, 2048}) {
    const Tensor x = random_tensor(backend, DType::f32, Shape{rows, kDim});
    const Tensor result = backend.allocate(DType::f32, Shape{rows, kDim});
    const Tensor hidden = backend.allocate(DType::f32, Shape{rows, kActive * kHidden});
    const Tensor other = backend.allocate(DType::f32, Shape{rows, kActive * kHidden});
    const Tensor logits = random_tensor(backend, DType::f32, Shape{rows, kExperts});
    const Tensor ids = backend.allocate(DType::i32, Shape{rows, kActive});
    const Tensor weights = backend.allocate(DType::f32, Shape{rows, kActive});
    const Routed routed{ids.view(), weights.view(), {}};
    const auto dense = [&] {
      const Projection products[] = {{gate.view(), {}, hidden.view()},
                                     {up.view(), {}, other.view()}};
      const Projection last{down.view(), {}, result.view()};
      backend.linear(x.view(), products);
      backend.activate(Activation::silu, hidden.view(), ConstTensorView(other.view()));
      backend.linear(hidden.view(), std::span(&last, 1));
    };
    const auto sparse = [&] {
      backend.route(logits.view(), {.per_token = kActive}, {}, routed);
      backend.experts(x.view(), routed, {addresses.view(), DType::bf16, kHidden, Activation::silu},
                      result.view());
    };
    // Dense and sparse take turns, so that other load falls on both.
    double dense_time = 1e30, sparse_time = 1e30;
    for (int turn = 0; turn < 4; ++turn) {
      dense_time = std::min(dense_time, best_time(kSeconds / 4, dense));
      sparse_time = std::min(sparse_time, best_time(kSeconds / 4, sparse));
    }
    const double flop = 2.0 * 3 * static_cast<double>(rows * kDim * kActive * kHidden);
    print_row("experts BF16, 4 of 16, " + std::to_string(rows) + " rows", flop / sparse_time,
              "GFLOP/s", flop / dense_time, "the dense part of the same work");
    const auto* chosen = ids.view().as<int32_t>();
    const std::set<int32_t> reached(chosen, chosen + rows * kActive);
    const double bytes = 3.0 * 2 * kHidden * kDim * static_cast<double>(reached.size());
    print_row("  weights of the " + std::to_string(reached.size()) + " experts reached",
              bytes / sparse_time, "GB/s", limits.bandwidth, "memory read");
  }
}

constexpr int32_t kKvHeads = 8, kHeadDim = 128;

Tensor make_pool(Backend& backend, DType dtype, int64_t tokens) {
  return random_tensor(backend, dtype, Shape{tokens / kPageSize, kKvHeads, kPageSize, kHeadDim});
}

void bench_attention(Backend& backend, const Limits& limits) {
  const Tensor scale = random_tensor(backend, DType::f32, Shape{kKvHeads});
  std::fill_n(scale.view().as<float>(), kKvHeads, 0.01f);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    constexpr int32_t kSequences = 4, kContext = 8192;
    const Tensor k = make_pool(backend, dtype, kSequences * kContext);
    const Tensor v = make_pool(backend, dtype, kSequences * kContext);
    const bool fp8 = fp8_format(dtype).has_value();
    AttentionOptions options{0.088f};
    options.rounded_to = fp8 ? DType::bf16 : dtype;  // as in a model of that dtype
    const PagedKv kv{k.view().data,
                     v.view().data,
                     fp8 ? scale.view().as<float>() : nullptr,
                     fp8 ? scale.view().as<float>() : nullptr,
                     kv_format(dtype),
                     kv_format(dtype),
                     kPageSize,
                     kKvHeads,
                     kHeadDim};
    for (const int64_t group : {1, 4, 8}) {
      const Sequences steps = make_sequences(backend, kSequences, kContext, 1);
      const Shape shape{kSequences, kKvHeads * group, kHeadDim};
      const Tensor q = random_tensor(backend, DType::f32, shape);
      const Tensor out = backend.allocate(DType::f32, shape);
      const double time = best_time(
          kSeconds, [&] { backend.attention(q.view(), kv, steps.batch(), options, out.view()); });
      print_row("attention " + std::string(dtype_name(dtype)) + " 4 x 8192 tokens, " +
                    std::to_string(group) + " heads per KV head",
                2.0 * static_cast<double>(k.view().bytes()) / time, "GB/s", limits.bandwidth,
                "memory read");
    }
    if (dtype == DType::f32 || dtype == DType::f8_e5m2) continue;
    constexpr int32_t kPrompt = 2048;
    const Sequences prompt = make_sequences(backend, 1, kPrompt, kPrompt);
    const Shape shape{kPrompt, kKvHeads * 4, kHeadDim};
    const Tensor q = random_tensor(backend, DType::f32, shape);
    const Tensor out = backend.allocate(DType::f32, shape);
    const double time = best_time(
        kSeconds, [&] { backend.attention(q.view(), kv, prompt.batch(), options, out.view()); });
    const double flop = 4.0 * kHeadDim * kKvHeads * 4 * (0.5 * kPrompt * (kPrompt + 1));
    print_row("attention " + std::string(dtype_name(dtype)) + " prompt of 2048, 32 / 8 heads",
              flop / time, "GFLOP/s", peak_of(limits, options.rounded_to) * limits.threads,
              "peak multiply-add");
  }
}

// Cosines and sines of angles that grow with the position. A true rotation keeps lengths, so that
// repeated rotation stays finite.   [rows, kHeadDim]
Tensor rope_table(Backend& backend, int32_t rows) {
  Tensor table = backend.allocate(DType::f32, Shape{rows, kHeadDim});
  for (int32_t row = 0; row < rows; ++row) {
    float* to = table.view().as<float>() + int64_t{row} * kHeadDim;
    for (int32_t i = 0; i < kHeadDim / 2; ++i) {
      const double angle = row * std::pow(10000.0, -2.0 * i / kHeadDim);
      to[i] = static_cast<float>(std::cos(angle));
      to[kHeadDim / 2 + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

void bench_rope(Backend& backend, const Limits& limits) {
  constexpr int32_t kRows = 4096;
  const Sequences step = make_sequences(backend, 1, kRows, kRows);
  const Tensor rope = rope_table(backend, kRows);
  const Tensor scale = random_tensor(backend, DType::f32, Shape{kKvHeads});
  std::fill_n(scale.view().as<float>(), kKvHeads, 0.01f);
  const Tensor q = random_tensor(backend, DType::f32, Shape{kRows, kKvHeads * 4, kHeadDim});
  const Tensor k = random_tensor(backend, DType::f32, Shape{kRows, kKvHeads, kHeadDim});
  const Tensor v = random_tensor(backend, DType::f32, Shape{kRows, kKvHeads, kHeadDim});
  const Tensor magnitudes = backend.allocate(DType::u64, Shape{3, kKvHeads, kMagnitudeWords});
  for (const DType dtype : {DType::f16, DType::f8_e4m3}) {
    const Tensor k_pool = make_pool(backend, dtype, kRows);
    const Tensor v_pool = make_pool(backend, dtype, kRows);
    for (const bool observe : {false, true}) {
      RopeAppend args{q.view(), k.view(), v.view(), rope.view(), step.batch(), {}, DType::f16, {}};
      args.kv = {k_pool.view().data,
                 v_pool.view().data,
                 scale.view().as<float>(),
                 scale.view().as<float>(),
                 kv_format(dtype),
                 kv_format(dtype),
                 kPageSize,
                 kKvHeads,
                 kHeadDim};
      if (observe) args.magnitudes = magnitudes.view();
      const double time = best_time(kSeconds, [&] { backend.rope_append(args); });
      // Bytes: Q, K and V are read and written, the table is read, the cache is written.
      const double bytes = 2.0 * static_cast<double>(q.view().bytes() + k.view().bytes() +
                                                     v.view().bytes() + k_pool.view().bytes()) +
                           static_cast<double>(rope.view().bytes());
      print_row("rope_append " + std::string(dtype_name(dtype)) + " 4096 rows, 32 / 8 heads" +
                    (observe ? ", observed" : ""),
                bytes / time, "GB/s", limits.bandwidth, "memory read");
    }
  }
}

// The gated DeltaNet of one layer of Qwen3-Next 80B, in steps of one sequence and of many.
void bench_states(Backend& backend, const Limits& limits) {
  constexpr int64_t kKHeads = 16, kVHeads = 32, kSize = 128, kWidth = 4;
  constexpr int64_t kChannels = (2 * kKHeads + kVHeads) * kSize;
  struct Case {
    int32_t sequences, rows;
  };
  for (const auto& [sequences, rows] : {Case{1, 512}, Case{64, 1}}) {
    const int64_t n = int64_t{sequences} * rows;
    const Sequences of = make_sequences(backend, sequences, rows + 1, rows);
    std::vector<int32_t> slots(static_cast<size_t>(sequences));
    std::iota(slots.begin(), slots.end(), 0);
    const Tensor kept = int_tensor(backend, slots, Shape{sequences});
    Batch batch = of.batch();
    batch.states = kept.view();
    const auto random = [&](const Shape& shape) {
      return random_tensor(backend, DType::f32, shape);
    };
    const Tensor q = random({n, kKHeads, kSize}), k = random({n, kKHeads, kSize});
    const Tensor v = random({n, kVHeads, kSize}), out = random({n, kVHeads, kSize});
    const Tensor step = random({n, kVHeads}), strength = random({n, kVHeads});
    const Tensor a_log = random({kVHeads}), bias = random({kVHeads});
    const Tensor state =
        backend.allocate(DType::f32, Shape{sequences, state_elements(kVHeads, kSize, kSize)});
    Recurrence args;
    args.q = q.view();
    args.k = k.view();
    args.v = v.view();
    args.step = step.view();
    args.strength = strength.view();
    args.a_log = a_log.view();
    args.step_bias = bias.view();
    args.unit = true;
    args.state = state.view();
    const double time = best_time(kSeconds, [&] { backend.recur(args, batch, out.view()); });
    // Operations: two sums over a state, and the update of the state.
    const double flop = 2.0 * 4 * static_cast<double>(n * kVHeads * kSize * kSize);
    const std::string what = " " + std::to_string(sequences) + " x " + std::to_string(rows) +
                             " rows, 32 heads of 128 x 128";
    print_row("recur" + what, flop / time, "GFLOP/s", limits.peak_f32 * limits.threads,
              "multiply-add");
    const Tensor x = random({n, kChannels}), weight = random({kChannels, kWidth});
    const Tensor tail = backend.allocate(DType::f32, Shape{sequences, kWidth - 1, kChannels});
    const CausalConv conv{weight.view(), {}, tail.view()};
    const double conv_time =
        best_time(kSeconds, [&] { backend.causal_conv(x.view(), conv, batch); });
    print_row("causal_conv" + what, 2.0 * static_cast<double>(x.view().bytes()) / conv_time, "GB/s",
              limits.bandwidth, "memory read");
  }
}

int run(int threads, const std::string& part) {
  const CpuIsa isa = chosen_cpu_isa();
  const auto backend = make_cpu_backend(threads, isa);
  ThreadPool pool(threads);
  const Limits limits{peak_f32(isa), peak_bf16(isa), peak_f16(isa), read_bandwidth(pool), threads};
  std::printf("%s\n", backend->describe().c_str());
  std::printf("peak multiply-add of one core: %.0f GFLOP/s f32, %.0f GFLOP/s bf16\n",
              limits.peak_f32 / 1e9, limits.peak_bf16 / 1e9);
  std::printf("memory read, all threads: %.1f GB/s\n\n", limits.bandwidth / 1e9);
  if (part.empty() || part == "linear") bench_linear(*backend, limits);
  if (part.empty() || part == "coded") bench_coded(*backend, limits);
  if (part.empty() || part == "linear") bench_scaling(limits);
  if (part.empty() || part == "experts") bench_experts(*backend, limits);
  if (part.empty() || part == "attention") bench_attention(*backend, limits);
  if (part.empty() || part == "latent") bench_latent(*backend, limits);
  if (part.empty() || part == "rope") bench_rope(*backend, limits);
  if (part.empty() || part == "states") bench_states(*backend, limits);
  return 0;
}

}  // namespace
}  // namespace fp8kv::bench

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  return fp8kv::bench::run(threads > 0 ? threads : fp8kv::usable_cores(), argc > 2 ? argv[2] : "");
}
