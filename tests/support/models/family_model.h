// The random models of tests/golden/make_families.py, and the results of transformers for them. No
// file has their weights: they are computed from the tensors' names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calib/collect.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "json/json.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// The names of the cases: files of tests/golden/families without ".json". ThreadSanitizer gets
// every third, because families do not differ in how threads share work. With any sanitizer a test
// that gives its turn (0, 1 or 2) gets every third of these, from that one on: tests of other turns
// run the other models.
std::vector<std::string> family_cases(std::optional<size_t> turn = std::nullopt);

Json family_golden(const std::string& name);

// Writes the model that a golden describes.
Checkpoint write_golden_model(const std::filesystem::path& folder, const Json& golden);

// Writes it in BF16, but for tensors whose name has one of these parts: they stay in F32.
Checkpoint write_narrow_model(const std::filesystem::path& folder, const Json& golden,
                              const std::vector<std::string>& wide);

struct FamilyModel {
  explicit FamilyModel(const std::string& name);
  // Changes one member of config.json to a JSON value; null removes it.
  FamilyModel(const std::string& name, const std::string& key, const std::string& value);

  TempDir folder;
  Json golden;
  Checkpoint checkpoint;
  ModelConfig config;
  std::vector<int32_t> ids;
  std::vector<int32_t> greedy;  // the tokens after the first kPrompt ids

  static constexpr size_t kPrompt = 16;
};

std::vector<double> numbers_of(const Json& array);

// Relative to the largest logit of a row. Ten sums of up to 80 terms give sqrt(80) * 10 * 2^-24 =
// 5e-6, and transformers has as much error. The tolerance is twice the sum.
inline constexpr double kLogitTolerance = 2e-5;

// The largest difference from the golden's logits, as a share of the largest logit of the row.
// logits [position][vocab_size]
double logit_difference(const FamilyModel& model, const std::vector<std::vector<float>>& logits);

// The largest such difference of two results, over all positions.
double logit_difference(const std::vector<std::vector<float>>& a,
                        const std::vector<std::vector<float>>& b);

// CHECKs the amax of K and V per head against transformers' cache. transformers also computes in
// f32, so the tolerance is twice the error of one side, like in test_collect.cpp.
inline constexpr double kAmaxTolerance = 1e-5;
void check_heads(const std::vector<MagnitudeCounts>& heads, const Json& expected);
void check_amax(const FamilyModel& model, const std::vector<LayerMagnitudes>& layers);

// CHECKs that the logits are within kLogitTolerance.
void check_logits(const FamilyModel& model, const std::vector<std::vector<float>>& logits);

// The config.json of a family's case with one member set to a JSON value.
std::string family_with(const std::string& name, const std::string& key, const std::string& value);

// The message that refuses the config.json of family_with(). Fails the test if none does.
std::string refusal_of_family(const std::string& name, const std::string& key,
                              const std::string& value);

// The config.json of a family's case without any description of its rope.
std::string without_rope(const std::string& name);

}  // namespace fp8kv::test
