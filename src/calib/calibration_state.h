// Saves a calibration between two layers, in a file beside its output, so that the same command can
// go on from there after it was stopped. Holds what was counted, the residual stream, what run it
// is of, and at its end the SHA-256 of all before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calib/residual.h"
#include "calib/run_identity.h"
#include "core/config.h"
#include "core/scales.h"
#include "core/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

class CalibrationState {
 public:
  // The file of the state of a calibration that writes `out`.
  static std::filesystem::path path_for(const std::filesystem::path& out);

  CalibrationState(std::filesystem::path path, RunIdentity identity);

  struct Progress {
    int64_t layers = 0;             // that are done
    std::vector<uint64_t> counted;  // [layers, 3, n_kv_heads, kMagnitudeWords]
    std::vector<LayerAmax> half;    // [layers], or nothing
    // [layers][experts], or nothing: see CollectedMagnitudes.
    std::vector<std::vector<uint64_t>> reached;
  };

  // What an earlier run of the same identity got to; nothing when there is no file. Throws for
  // another identity, saying what differs, and for a file that is no such state, or is damaged:
  // every byte of it is read.
  std::optional<Progress> find(const ModelConfig& config, int64_t total_rows, DType activation);
  // Fills `residual` from the file that was found.
  void restore(ResidualStream& residual) const;
  // Replaces the file in one step.
  void save(const Progress& progress, const ModelConfig& config, int64_t total_rows,
            DType activation, ResidualStream& residual);
  // Once the output is there.
  void remove();

  const std::filesystem::path& path() const { return path_; }
  int64_t saved_layers() const { return saved_layers_; }  // 0: nothing is in the file

 private:
  void check_identity(const SafetensorsHeader& header) const;
  void check_seal() const;

  std::filesystem::path path_;
  RunIdentity identity_;
  int64_t saved_layers_ = 0;
  TensorEntry residual_;  // of the file that was found
};

}  // namespace fp8kv
