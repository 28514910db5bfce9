// Keeps the exponents of searched layers beside an unfinished output. The same command takes them
// from there after it was stopped, since the search takes most of its time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/log.h"
#include "equalize/scaled_weights.h"
#include "files/output/finished_files.h"

namespace fp8kv {

class KeptExponents {
 public:
  // `identity` has everything that decides the exponents. Throws as FinishedFiles does.
  KeptExponents(const std::filesystem::path& out, const std::string& identity, Log& log)
      : files_(out, identity), log_(log) {}

  // Returns the exponents of a layer from an earlier run; nothing if there are none. Also returns
  // nothing, with a warning, if the file was damaged or has exponents that are not allowed.
  std::optional<LayerExponents> find(size_t layer, const AllowedExponents& allowed) const;
  void keep(size_t layer, const LayerExponents& exponents) const;
  // Removes everything. Call it once the output exists.
  void remove(size_t n_layers) const;

  const FinishedFiles& files() const { return files_; }

 private:
  FinishedFiles files_;
  Log& log_;
};

}  // namespace fp8kv
