// Saves a calibration between two layers, in a file beside its output, so that the same command can
// go on from there after it was stopped. Holds what was collected, the residual stream, what run it
// is of, and at its end the SHA-256 of all before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "calib/collected.h"
#include "calib/residual.h"
#include "calib/run_identity.h"
#include "core/config.h"
#include "core/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

// Windows that go through the model together, and what was collected in those before them.
struct Round {
  uint64_t first = 0;  // window
  uint64_t count = 0;
  CollectedMagnitudes before = {};  // without layers where first is 0
};

class CalibrationState {
 public:
  // The file of the state of a calibration that writes `out`.
  static std::filesystem::path path_for(const std::filesystem::path& out);

  CalibrationState(std::filesystem::path path, RunIdentity identity);

  // The round that an earlier run of the same identity got to; nothing when there is no file.
  // Throws for another identity, saying what differs, and for a file that is no such state, or is
  // damaged: every byte of it is read.
  std::optional<Round> find_round(const ModelConfig& config);
  // What follows is of this round. Until then it is the first and only one.
  void begin_round(Round round);

  // The layers of the round that an earlier run collected; nothing when there is no file, or it is
  // of a round before. Throws as find_round does.
  std::optional<CollectedMagnitudes> find(const ModelConfig& config, int64_t total_rows,
                                          DType activation);
  // Fills `residual` from the file that was found.
  void restore(ResidualStream& residual) const;
  // Replaces the file in one step.
  void save(const CollectedMagnitudes& layers, const ModelConfig& config, int64_t total_rows,
            DType activation, ResidualStream& residual);
  // Once the output is there.
  void remove();

  const std::filesystem::path& path() const { return path_; }
  int64_t saved_layers() const { return saved_layers_; }  // of the round; 0: none are in the file

 private:
  std::optional<SafetensorsHeader> open() const;
  void check_identity(const SafetensorsHeader& header) const;
  void check_seal() const;
  [[noreturn]] void fail_tensors() const;

  std::filesystem::path path_;
  RunIdentity identity_;
  Round round_;
  std::optional<SafetensorsHeader> opened_;  // by find_round, for find
  int64_t saved_layers_ = 0;
  TensorEntry residual_;  // of the file that was found
};

}  // namespace fp8kv
