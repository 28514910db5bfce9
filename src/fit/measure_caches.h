// Measures caches against the 16-bit cache. Keeps the figures beside an unfinished output, so that
// the same command goes on from there after it was stopped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "data/dataset.h"
#include "eval/eval_report.h"
#include "files/output/finished_files.h"

namespace fp8kv {

struct MeasuredCache {
  TokenFigures total;
  std::vector<PartSums> parts;
};

struct MeasuredCaches {
  TokenFigures baseline;
  std::vector<MeasuredCache> caches;
};

// The measurements of a run, in the order in which it makes them. A run with the same identity
// makes the same ones.
class KeptMeasurements {
 public:
  // `identity` has everything that decides the measurements. Throws as FinishedFiles does.
  KeptMeasurements(const std::filesystem::path& out, const std::string& identity, Log& log)
      : files_(out, identity), log_(log) {}

  // Returns the next measurement of an earlier run; nothing if it has none. Also returns nothing,
  // with a warning, if the file was damaged.
  std::optional<MeasuredCaches> next(size_t caches);
  // Keeps the measurement that next() did not have, unless a figure is not finite.
  void keep(const MeasuredCaches& measured);
  // Removes everything. Call it once the output exists.
  void remove() const { files_.remove(names_); }

  const FinishedFiles& files() const { return files_; }

 private:
  FinishedFiles files_;
  Log& log_;
  std::vector<std::string> names_;  // of the measurements so far
};

struct MeasureOptions {
  std::string doing;  // "confirming 3", for progress
  int threads = 0;
  KeptMeasurements* kept = nullptr;  // measurements are taken from there and kept there; null: none
};

// Returns the figures of each candidate, in order. Takes names, types, scales and layers left from
// `candidates`. The same bits for any number of threads, with or without `kept`.
MeasuredCaches measure_caches(const ModelOnBackend& model, const WindowIds& windows,
                              std::vector<CandidateReport> candidates,
                              const MeasureOptions& options, Log& log);

}  // namespace fp8kv
