// Generation with models that have experts. Rows of many prompts are grouped by expert, and each
// row gets the same bits as alone.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/model/read_model_config.h"
#include "generate/generate.h"
#include "support/backends/logit_tap.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/sanitizers.h"

namespace fp8kv {
namespace {

struct Served {
  std::string name;
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  std::vector<int32_t> ids;
};

// Checks every golden model with experts: all forms of routers, shared experts, dense layers. See
// family_cases() for `turn`.
template <typename Check>
void with_every_model(size_t turn, const Check& check) {
  size_t models = 0;
  for (const char* name : test::kGoldens) {
    const auto [folder, file, ids] = test::golden(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    if (!config.experts) continue;
    check(Served{name, checkpoint, config, ids});
    ++models;
  }
  for (const std::string& name : test::family_cases(turn)) {
    const test::FamilyModel model(name);
    if (!model.config.experts) continue;
    check(Served{name, model.checkpoint, model.config, model.ids});
    ++models;
  }
  CHECK(models >= (test::kThreadSanitizer ? 10 : 24));
}

// The logits of every drawn token, by seed and position.
test::LogitTap::Rows logits_of(const Served& model, const std::vector<Request>& requests,
                               DType dtype, const GenerationOptions& options = {}) {
  const auto backend = make_cpu_backend(2);
  test::LogitTap tap(*backend);
  const int64_t pages = pages_needed(requests, options, model.config.max_seq_len);
  generate(model.checkpoint, model.config, tap,
           {{dtype, model.config.n_layers(), pages},
            nullptr,
            requests,
            options,
            {[](size_t, int32_t) {}, [](size_t, FinishReason) {}}});
  return tap.rows;
}

// The largest difference of two rows, relative to the largest logit of `b`.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return difference / largest;
}

// Prompts of several lengths from one text. Each has its own seed.
std::vector<Request> requests_from(const std::vector<int32_t>& ids) {
  std::vector<Request> requests;
  for (const size_t first : {0, 3, 1, 8, 5}) {
    const size_t length = 1 + 4 * first % 15;
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    requests.push_back({{begin, end}, 4, {1.0f, 0, 1.0f, first}});
  }
  return requests;
}

}  // namespace

TEST_CASE("generate: with experts too, a prompt gets what it gets alone, bit for bit") {
  with_every_model(1, [](const Served& model) {
    CAPTURE(model.name);
    const std::vector<Request> requests = requests_from(model.ids);
    for (const DType dtype : {DType::f32, DType::f8_e4m3}) {
      const auto together = logits_of(model, requests, dtype);
      CHECK(together.size() == 5 * 4);
      // Three sequences at a time, and prompts in chunks of four tokens.
      const bool same =
          logits_of(model, requests, dtype, {.max_batch = 3, .chunk_rows = 4}) == together;
      CHECK(same);
      for (const Request& request : requests) {
        for (const auto& [key, row] : logits_of(model, {request}, dtype)) {
          const bool alone = together.contains(key) && row == together.at(key);
          CHECK(alone);
        }
      }
    }
  });
}

// Decoded rows use other arithmetic than prompt rows, so the last bits may differ.
TEST_CASE("generate: with experts, a prompt and decoded tokens give what one pass over all gives") {
  with_every_model(2, [](const Served& model) {
    CAPTURE(model.name);
    const size_t length = 12, decoded = 8;
    const std::vector<int32_t> prompt(model.ids.begin(), model.ids.begin() + length);
    std::vector<int32_t> all = prompt;
    const auto backend = make_cpu_backend(2);
    test::LogitTap tap(*backend);
    const std::vector<Request> requests = {{prompt, decoded}};
    const int64_t pages = pages_needed(requests, {}, model.config.max_seq_len);
    generate(model.checkpoint, model.config, tap,
             {{DType::f32, model.config.n_layers(), pages},
              nullptr,
              requests,
              {},
              {[&](size_t, int32_t id) { all.push_back(id); }, [](size_t, FinishReason) {}}});
    REQUIRE(all.size() == length + decoded);
    for (size_t n = length; n < all.size(); ++n) {
      const std::vector<int32_t> so_far(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
      const auto one_pass = logits_of(model, {{so_far, 1}}, DType::f32);
      REQUIRE(one_pass.size() == 1);
      const auto& [key, row] = *one_pass.begin();
      REQUIRE(tap.rows.contains(key));
      CHECK(largest_difference(row, tap.rows.at(key)) < test::kLogitTolerance);
    }
  });
}

}  // namespace fp8kv
