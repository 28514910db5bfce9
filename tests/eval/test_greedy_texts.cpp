// Greedy texts of an evaluation, and where those of two caches part.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "eval/evaluate.h"
#include "eval/greedy_texts.h"
#include "support/models/evaluated_model.h"
#include "support/models/run_model.h"
#include "support/models/windows.h"

using namespace fp8kv;
using test::candidate;
using test::run;
using test::scales_by;
using test::windows_of;
using Model = test::EvaluatedModel;
using WindowList = std::vector<std::vector<int32_t>>;

TEST_CASE("evaluate: greedy text parts where the caches' own continuations part") {
  const Model model;
  const WindowList windows = windows_of({40, 9, 3, 100});
  KvScales coarse = scales_by("amax*0.1", model, windows);
  const EvalReport report =
      run({model.checkpoint, model.config}, windows, {candidate("fp8", DType::f8_e4m3, coarse)},
          {.baseline = DType::f32, .greedy_tokens = 20});
  const GreedyFigures& greedy = report.candidates[0].greedy;
  REQUIRE(greedy.agreed.size() == 3);  // a window of three tokens has no prompt
  const auto backend = make_cpu_backend(1);
  size_t at = 0;
  bool any_part = false;
  for (const size_t window : {0, 1, 3}) {
    std::vector<int32_t> prompt = windows[window];
    prompt.resize(std::min<size_t>(prompt.size(), 32));
    const auto a = test::run_greedy({model.checkpoint, model.config, *backend}, prompt, 20);
    const auto b = test::run_greedy({model.checkpoint, model.config, *backend}, prompt, 20,
                                    {.cache_dtype = DType::f8_e4m3, .scales = &coarse});
    const auto parted = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    CHECK(greedy.agreed[at] == parted);
    CHECK(report.baseline.greedy.agreed[at] == greedy.length[at]);
    any_part = any_part || parted < 20;
    ++at;
  }
  CHECK(any_part);
}

TEST_CASE("greedy texts: are the two caches' own, those that part first before others") {
  const Model model;
  const WindowList windows = windows_of({40, 9, 3, 100});
  KvScales coarse = scales_by("amax*0.1", model, windows);
  const EvalOptions options{.baseline = DType::f32, .greedy_tokens = 20};
  const EvalReport report = run({model.checkpoint, model.config}, windows,
                                {candidate("fp8", DType::f8_e4m3, coarse)}, options);
  const CandidateReport& cache = report.candidates[0];
  const auto backend = make_cpu_backend(1);
  Log log(Verbosity::quiet);
  const auto texts = [&](size_t most) {
    return parted_greedy_texts({model.checkpoint, model.config, *backend},
                               parted_prompts(windows, cache.greedy, most), options, cache, log);
  };
  const std::vector<PartedIds> all = texts(8);
  std::vector<int64_t> places;
  for (size_t i = 0; i < cache.greedy.agreed.size(); ++i) {
    if (cache.greedy.agreed[i] < cache.greedy.length[i]) places.push_back(cache.greedy.agreed[i]);
  }
  std::sort(places.begin(), places.end());
  REQUIRE(all.size() == places.size());
  REQUIRE(all.size() > 1);
  // A text ends before a stop id, which run_greedy ignores.
  const auto begins = [](const std::vector<int32_t>& text, const std::vector<int32_t>& whole) {
    return text.size() <= whole.size() && std::equal(text.begin(), text.end(), whole.begin());
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<int32_t>& prompt = all[i].prompt;
    CHECK(begins(all[i].baseline,
                 test::run_greedy({model.checkpoint, model.config, *backend}, prompt, 20)));
    CHECK(begins(all[i].other,
                 test::run_greedy({model.checkpoint, model.config, *backend}, prompt, 20,
                                  {.cache_dtype = DType::f8_e4m3, .scales = &coarse})));
    const auto parted = std::ranges::mismatch(all[i].baseline, all[i].other).in1;
    CHECK(parted - all[i].baseline.begin() == places[i]);
  }
  CHECK(texts(1).size() == 1);
  CHECK(texts(1)[0].prompt == all[0].prompt);
}
