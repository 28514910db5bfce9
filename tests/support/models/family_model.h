// The random models that tests/golden/make_families.py describes, and what transformers computes
// with them. Their weights are no file: they follow from the tensors' names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calib/collect.h"
#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "json/json.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// The cases, by name: the files of tests/golden/families without ".json". ThreadSanitizer gets
// every third: families differ in what is computed, not in how threads share it.
std::vector<std::string> family_cases();

Json family_golden(const std::string& name);

// Writes the model that a golden describes.
Checkpoint write_golden_model(const std::filesystem::path& folder, const Json& golden);

struct FamilyModel {
  explicit FamilyModel(const std::string& name);
  // With a member of its config.json set to a JSON value; null removes it.
  FamilyModel(const std::string& name, const std::string& key, const std::string& value);

  TempDir folder;
  Json golden;
  Checkpoint checkpoint;
  ModelConfig config;
  std::vector<int32_t> ids;
  std::vector<int32_t> greedy;  // what follows the first kPrompt of them

  static constexpr size_t kPrompt = 16;
};

std::vector<double> numbers_of(const Json& array);

// Of the largest logit of a row: ten sums of up to 80 terms, sqrt(80) * 10 * 2^-24 = 5e-6, and as
// much of transformers' own; twice that.
inline constexpr double kLogitTolerance = 2e-5;

// The largest difference from the golden's logits, as a share of the largest logit of the row.
// logits [position][vocab_size]
double logit_difference(const FamilyModel& model, const std::vector<std::vector<float>>& logits);

// The same of two computations, over all positions of both.
double logit_difference(const std::vector<std::vector<float>>& a,
                        const std::vector<std::vector<float>>& b);

// CHECKs that K and V, head by head, reach what transformers' cache received. As in
// test_collect.cpp: transformers computes in f32 as well, so twice what one of the two is off.
inline constexpr double kAmaxTolerance = 1e-5;
void check_amax(const FamilyModel& model, const std::vector<LayerMagnitudes>& layers);

// CHECKs that it is within the tolerance.
void check_logits(const FamilyModel& model, const std::vector<std::vector<float>>& logits);

}  // namespace fp8kv::test
