// Saves a calibration between two layers, in a file beside its output, so that the same command can
// resume after a stop. The file holds the collected magnitudes, the residual stream and the run's
// identity. It ends with the SHA-256 of everything before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "calib/measure/collected.h"
#include "calib/run_identity.h"
#include "calib/windows/residual.h"
#include "core/model/config.h"
#include "core/numbers/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

// Windows that go through the model together, and the magnitudes collected in the windows before.
struct Round {
  uint64_t first = 0;  // index of its first window
  uint64_t count = 0;
  CollectedMagnitudes before = {};  // without layers if `first` is 0
};

class CalibrationState {
 public:
  // Returns the path of the state file of a calibration that writes `out`.
  static std::filesystem::path path_for(const std::filesystem::path& out);

  CalibrationState(std::filesystem::path path, RunIdentity identity);

  // Returns the round that an earlier run of the same identity reached, or nothing if there is no
  // file. Reads every byte. Throws if the file belongs to another run, saying what differs, and if
  // it is damaged or no state file at all.
  std::optional<Round> find_round(const ModelConfig& config);
  // Sets the round of the following calls. Without this call there is one round.
  void begin_round(Round round);

  // Returns the layers of this round that an earlier run collected. Returns nothing if there is no
  // file, or if it belongs to an earlier round. Throws as find_round does.
  std::optional<CollectedMagnitudes> find(const ModelConfig& config, int64_t total_rows,
                                          DType activation);
  // Fills `residual` from the file that find() opened.
  void restore(ResidualStream& residual) const;
  // Replaces the file in one step.
  void save(const CollectedMagnitudes& layers, const ModelConfig& config, int64_t total_rows,
            DType activation, ResidualStream& residual);
  // Removes the file. Call it once the output exists.
  void remove();

  const std::filesystem::path& path() const { return path_; }
  int64_t saved_layers() const { return saved_layers_; }  // of this round, in the file

 private:
  std::optional<SafetensorsHeader> open() const;
  void check_identity(const SafetensorsHeader& header) const;
  void check_seal() const;
  [[noreturn]] void fail_tensors() const;

  std::filesystem::path path_;
  RunIdentity identity_;
  Round round_;
  std::optional<SafetensorsHeader> opened_;  // set by find_round, used by find
  int64_t saved_layers_ = 0;
  TensorEntry residual_;  // in the file that was found
};

}  // namespace fp8kv
