// A server of the test's own that computes with the demo model, in any cache, and answers as one of
// the runtimes that `attest` knows.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attest/hypotheses.h"
#include "attest/predictor.h"
#include "backend/cpu/cpu_backend.h"
#include "base/text.h"
#include "checkpoint/read_model_config.h"
#include "json/json.h"
#include "scales/scale_file.h"
#include "support/hub_server.h"
#include "support/places.h"
#include "support/run_cli.h"
#include "support/temp_dir.h"
#include "text/tokenizer.h"

namespace fp8kv::test {

inline std::filesystem::path demo_model() {
  return source_dir() / "datasets/demo";
}

// The demo model in one cache.
class DemoServer {
 public:
  explicit DemoServer(Hypothesis cache)
      : cache_(std::move(cache)),
        checkpoint_(Checkpoint::open(demo_model())),
        config_(read_model_config(checkpoint_)),
        backend_(make_cpu_backend(1)),
        predictor_(checkpoint_, config_, *backend_, 1) {}

  // Of the tokens after the first, with noise of about 0.002 that depends on the text alone.
  std::vector<double> log_probs(const std::vector<int32_t>& ids) {
    const std::lock_guard lock(mutex_);
    Log log(Verbosity::quiet);
    Progress progress(log, "", 1);
    const Lane lane{cache_.cache, cache_.scales ? &*cache_.scales : nullptr};
    std::vector<double> found = predictor_.log_probs({ids}, {lane}, progress)[0];
    uint32_t state = 1;
    for (size_t i = 0; i < found.size(); ++i) {
      state = state * 1664525u + 1013904223u + static_cast<uint32_t>(ids[i + 1]);
      const double noise = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
      found[i] = std::min(0.0, found[i] + 0.008 * noise);
    }
    return found;
  }
  const Tokenizer& tokenizer() {
    if (!tokenizer_) tokenizer_ = Tokenizer::find_in(demo_model());
    return *tokenizer_;
  }

 private:
  Hypothesis cache_;
  Checkpoint checkpoint_;
  ModelConfig config_;
  std::unique_ptr<Backend> backend_;
  Predictor predictor_;
  std::optional<Tokenizer> tokenizer_;
  std::mutex mutex_;
};

}  // namespace fp8kv::test
