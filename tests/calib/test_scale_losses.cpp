// Losses of scales, held to sums over plain loops in double precision.
#include <algorithm>
#include <array>
#include <cmath>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/download_floats.h"
#include "calib/collect.h"
#include "calib/measure/scale_losses.h"
#include "calib/windows/workspace.h"
#include "checkpoint/model/read_model_config.h"
#include "core/scales/scale_grid.h"
#include "model/embedding.h"
#include "model/weights/weight_loader.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/streamed_model.h"
#include "support/models/tiny_config.h"
#include "support/models/windows.h"

namespace fp8kv {
namespace {

using Values = std::vector<float>;

struct Model {
  explicit Model(test::TinyConfig shape)
      : checkpoint([&] {
          shape.max_seq_len = 320;
          test::write_tiny_checkpoint(folder / "model", shape);
          return Checkpoint::open(folder / "model");
        }()),
        config(read_model_config(checkpoint)) {}

  test::TempDir folder;
  Checkpoint checkpoint;
  ModelConfig config;
};

// One window in one layer: K, V and Q as they are cached, and the rows that enter the layer.
struct Seen {
  Values q, k, v, x, o, post_norm;
};

// Runs a window through the layers one by one.
std::vector<Seen> see(const Model& model, const std::vector<int32_t>& ids) {
  const auto backend = make_cpu_backend(1);
  const WindowPlan plan = plan_windows({ids});
  const ModelConfig& config = model.config;
  Workspace workspace(*backend, config, plan, config.n_layers());
  Embedding embedding(model.checkpoint, config, *backend, EmbeddingTable::in_file);
  const WeightLoader loader(model.checkpoint, config, *backend);
  workspace.rows.begin({ids}, plan.batches[0]);
  const Tensor x = backend->allocate(DType::f32, Shape{plan.total_rows, config.dim});
  embedding.embed(workspace.rows.step, x.view());
  std::vector<Seen> layers;
  workspace.forward.show_projected([&](const AttentionInputs& inputs) {
    Seen& seen = layers.emplace_back();
    download_floats(*backend, inputs.q, seen.q);
    download_floats(*backend, inputs.k, seen.k);
    download_floats(*backend, inputs.v, seen.v);
    download_floats(*backend, inputs.x, seen.x);
  });
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const LayerWeights weights = loader.layer(i);
    workspace.forward.layer(i, weights, x.view(),
                            {workspace.rows.step.batch(), workspace.rows.cache.layer(i)});
    download_floats(*backend, weights.o.weight, layers.back().o);
    if (weights.attn_post_norm) {
      download_floats(*backend, weights.attn_post_norm->weight, layers.back().post_norm);
    }
  }
  return layers;
}

// The nearest E4M3 number, for a value below 448.
double rounded(double x, double scale) {
  const double magnitude = std::abs(x) / scale;
  if (magnitude == 0) return 0;
  const double step = std::exp2(std::max(std::floor(std::log2(magnitude)), -6.0) - 3);
  return std::copysign(std::nearbyint(magnitude / step) * step * scale, x);
}

class Oracle {
 public:
  Oracle(const ModelConfig& config, const Seen& seen)
      : seen_(seen),
        size_(static_cast<size_t>(config.head_dim())),
        heads_(static_cast<size_t>(config.n_heads)),
        kv_heads_(static_cast<size_t>(config.n_kv_heads())),
        dim_(static_cast<size_t>(config.dim)),
        rows_(seen.x.size() / dim_) {}

  // The loss of one KV head's K or V at a mantissa, summed over the measured rows.
  double loss(size_t kv_head, bool key, int mantissa) const {
    const Values k0 = stored(seen_.k, 0), v0 = stored(seen_.v, 0);
    const Values &k = key ? stored(seen_.k, mantissa) : k0,
                 &v = key ? v0 : stored(seen_.v, mantissa);
    const Values &exact_k = key ? seen_.k : k0, &exact_v = key ? v0 : seen_.v;
    double sum = 0;
    for (const size_t row : measured()) {
      std::vector<double> change(dim_), whole(dim_);
      const size_t share = heads_ / kv_heads_;
      // A normed block's factor follows its output without a change of K.
      for (size_t head = 0; head < heads_; ++head) {
        project(head, attend(head, row, seen_.k, v0), whole);
      }
      for (size_t head = kv_head * share; head < (kv_head + 1) * share; ++head) {
        std::vector<double> off = attend(head, row, k, v);
        const std::vector<double> exact = attend(head, row, exact_k, exact_v);
        for (size_t i = 0; i < size_; ++i) off[i] -= exact[i];
        project(head, off, change);
      }
      double error = 0, square = 0, output = 0;
      for (size_t i = 0; i < dim_; ++i) {
        const double weight = seen_.post_norm.empty() ? 1 : seen_.post_norm[i];
        error += change[i] * weight * change[i] * weight;
        square += double{seen_.x[row * dim_ + i]} * double{seen_.x[row * dim_ + i]};
        output += whole[i] * whole[i] / static_cast<double>(dim_);
      }
      sum += std::min(1.0, error / square / (seen_.post_norm.empty() ? 1 : output));
    }
    return sum;
  }

 private:
  // The last 16 rows of each 128.
  std::vector<size_t> measured() const {
    std::vector<size_t> rows;
    for (size_t row = 0; row < rows_; ++row) {
      const size_t end = std::min(rows_, row / 128 * 128 + 128);
      if (row + 16 >= end) rows.push_back(row);
    }
    return rows;
  }

  Values stored(const Values& all, int mantissa) const {
    Values made = all;
    for (size_t head = 0; head < kv_heads_; ++head) {
      float amax = 0;
      for_values(made, head, [&](float& x) { amax = std::max(amax, std::abs(x)); });
      double scale = std::exp2(mantissa / 16.0);
      while (scale * 448 >= amax) scale /= 2;
      while (scale * 448 < amax) scale *= 2;
      for_values(made, head, [&](float& x) { x = static_cast<float>(rounded(x, scale)); });
    }
    return made;
  }

  template <typename Work>
  void for_values(Values& all, size_t head, const Work& work) const {
    for (size_t row = 0; row < rows_; ++row) {
      for (size_t i = 0; i < size_; ++i) work(all[(row * kv_heads_ + head) * size_ + i]);
    }
  }

  std::vector<double> attend(size_t head, size_t row, const Values& k, const Values& v) const {
    const size_t kv = head / (heads_ / kv_heads_);
    std::vector<double> weight, out(size_);
    double sum = 0;
    for (size_t j = 0; j <= row; ++j) {
      double dot = 0;
      for (size_t i = 0; i < size_; ++i) {
        dot += double{seen_.q[(row * heads_ + head) * size_ + i]} *
               double{k[(j * kv_heads_ + kv) * size_ + i]};
      }
      weight.push_back(std::exp(dot / std::sqrt(static_cast<double>(size_))));
      sum += weight.back();
    }
    for (size_t j = 0; j <= row; ++j) {
      for (size_t i = 0; i < size_; ++i) {
        out[i] += weight[j] / sum * double{v[(j * kv_heads_ + kv) * size_ + i]};
      }
    }
    return out;
  }

  // Adds a head's product with the output matrix.
  void project(size_t head, const std::vector<double>& attended, std::vector<double>& sum) const {
    for (size_t i = 0; i < dim_; ++i) {
      for (size_t j = 0; j < size_; ++j) {
        sum[i] += double{seen_.o[i * heads_ * size_ + head * size_ + j]} * attended[j];
      }
    }
  }

  const Seen& seen_;
  size_t size_, heads_, kv_heads_, dim_, rows_;
};

std::vector<LayerMagnitudes> measured(const Model& model,
                                      const std::vector<std::vector<int32_t>>& windows,
                                      int threads = 1, int64_t batch_rows = kBatchRows) {
  const auto backend = make_cpu_backend(threads);
  Log log(Verbosity::quiet);
  CollectOptions options;
  options.losses = true;
  options.batch_rows = batch_rows;
  return collect_magnitudes({model.checkpoint, model.config, *backend}, windows, log, options);
}

TEST_CASE("scale_losses: are those of attention in double precision, window by window") {
  for (const char* architecture : {"LlamaForCausalLM", "Olmo2ForCausalLM"}) {
    CAPTURE(architecture);
    const Model model(test::tiny_config(architecture));
    const auto windows = test::windows_of({150, 9}, 3);
    const auto layers = measured(model, windows);
    std::vector<std::vector<Seen>> seen;
    for (const auto& ids : windows) seen.push_back(see(model, ids));
    for (size_t layer = 0; layer < 2; ++layer) {
      for (const bool key : {true, false}) {
        for (size_t head = 0; head < 2; ++head) {
          const auto& found = (key ? layers[layer].k : layers[layer].v)[head].losses;
          REQUIRE(found.size() == kScaleMantissas);
          for (const int mantissa : {0, 1, 7, 15}) {
            double expected = 0;
            for (const auto& window : seen) {
              expected += Oracle(model.config, window[layer]).loss(head, key, mantissa);
            }
            // Outputs are right to some 20 roundings of 2^-24, and change by a hundredth or more:
            // 1e-4 of a change, and twice that of its square. The tolerance is five times as much.
            CHECK(static_cast<double>(found[static_cast<size_t>(mantissa)]) * kLossUnit ==
                  doctest::Approx(expected).epsilon(1e-3));
          }
        }
      }
    }
  }
}

TEST_CASE("scale_losses: have the same bits for any threads, batches and shards") {
  const Model model(test::tiny_config());
  const auto windows = test::windows_of({40, 150, 7, 64}, 3);
  const auto all = measured(model, windows, 2);
  CHECK(all[0].k[0].losses[3] > 0);
  auto parts = measured(model, {windows[0], windows[2]}, 1);
  add_up(parts, measured(model, {windows[1], windows[3]}, 2, 64));
  for (size_t layer = 0; layer < 2; ++layer) {
    for (size_t head = 0; head < 2; ++head) {
      CHECK(all[layer].k[head].losses == parts[layer].k[head].losses);
      CHECK(all[layer].v[head].losses == parts[layer].v[head].losses);
    }
  }
}

TEST_CASE("scale_losses: collecting them changes nothing else") {
  const test::StreamedModel model;
  const auto backend = make_cpu_backend(1);
  CollectOptions options;
  options.losses = true;
  CHECK(test::same_bits(model.collect(*backend, options), model.collect(*backend)));
}

TEST_CASE("scale_losses: every family has them in each layer with K and V of their own") {
  size_t measured = 0, refused = 0;
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const auto backend = make_cpu_backend(1);
    Log log(Verbosity::quiet);
    CollectOptions options;
    options.losses = true;
    const auto collect = [&] {
      return collect_magnitudes({model.checkpoint, model.config, *backend}, {model.ids}, log,
                                options);
    };
    if (model.config.shared_block) {
      CHECK(test::error_of([&] { collect(); }, ErrorKind::usage) ==
            "losses of scales: are measured by what attention adds to the stream, and the shared "
            "blocks of this model add nothing to it");
      continue;
    }
    if (model.config.block.differential) {
      CHECK(test::error_of([&] { collect(); }, ErrorKind::usage) ==
            "losses of scales: are measured for each KV head, and differential attention "
            "subtracts the output of one head from another's");
      continue;
    }
    if (model.config.latent || model.config.shared_row) {
      CHECK(test::error_of([&] { collect(); }, ErrorKind::usage) ==
            cat("losses of scales: are measured for K and V apart, and this model caches ",
                model.config.latent ? "latents, where one scale serves both"
                                    : "one row that is K and V"));
      ++refused;
      continue;
    }
    const std::vector<LayerMagnitudes> layers = collect();
    for (const LayerMagnitudes& layer : layers) {
      for (const auto* heads : {&layer.k, &layer.v}) {
        for (const MagnitudeCounts& head : *heads) {
          REQUIRE(head.losses.size() == kScaleMantissas);
          CHECK(*std::min_element(head.losses.begin(), head.losses.end()) > 0);
        }
      }
    }
    test::check_amax(model, layers);
    ++measured;
  }
  CHECK(measured > 10);
  CHECK(refused > 0);
}

}  // namespace
}  // namespace fp8kv
