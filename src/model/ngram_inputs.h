// The rows of n-grams that layers look up: see NgramConfig. The tables stay in their files, since
// they may be larger than the rest of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "files/file.h"
#include "model/step.h"

namespace fp8kv {

class NgramInputs {
 public:
  // REQUIRES config.ngrams, and the checkpoint to have passed read_model_config and to outlive
  // this. Throws if the files have other numbers for hashes than the config gives.
  NgramInputs(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend);

  // The rows of layer `index` for the step's tokens; nothing if it has no tables. Valid until the
  // next call.   [rows, NgramConfig::dim] activation dtype
  std::optional<ConstTensorView> of(const Step& step, int64_t index);

 private:
  // A tensor in its file.
  struct Place {
    InputFile* file;
    uint64_t begin;
  };
  struct Layer {
    NgramTables tables;
    std::vector<Place> files;  // [NgramConfig::files]
  };

  void check_numbers(const Checkpoint& checkpoint, int64_t index, const char* buffer,
                     std::span<const int64_t> expected) const;
  void reserve(int64_t rows);

  Backend& backend_;
  const ModelConfig& config_;
  std::map<std::string, InputFile> files_;  // by path
  std::map<int64_t, Layer> layers_;
  int64_t max_rows_ = 0;  // tokens of the buffers below
  Tensor stored_;         // [max_rows_ * tables, row_dim], of the files' type
  Tensor rows_;           // [max_rows_ * tables, row_dim] activation dtype
  Tensor numbers_;        // [max_rows_ * tables] i32: 0, 1, 2, ...
  std::vector<int64_t> ids_;
  std::vector<int32_t> newest_first_;
  std::vector<std::byte> bytes_;
};

}  // namespace fp8kv
