// Writes a new checkpoint folder: an old one with factors folded into its weights. Never modifies
// the old one. Only weights that take factors change; all other bytes keep value and place.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/identity/equalized_from.h"
#include "core/model/config.h"
#include "equalize/find_exponents.h"
#include "scales/write/inject.h"

namespace fp8kv {

// Throws if no folder can be made, whatever the factors are: `out` is taken or within the source,
// or the source already has KV scales or was equalised before.
void check_equalizable(const Checkpoint& checkpoint, const std::filesystem::path& out,
                       bool overwrite);

struct EqualizedFiles {
  std::vector<InjectedFile> files;   // by name
  std::vector<std::string> skipped;  // source files left behind, with the reason
  uint64_t written_bytes = 0;
};

// Fills the new folder `to`: shards with factors, `record`, and copies of everything else. Leaves
// out hidden folders, and weight files that the checkpoint does not read.
EqualizedFiles write_equalized(const Checkpoint& checkpoint, const ModelConfig& config,
                               std::span<const LayerFactors> layers, const std::string& record,
                               const std::filesystem::path& to);

// The contents of kEqualizeRecord. `fingerprint`: that of the source model.
struct EqualizeRecord {
  std::string tool_version;
  std::string model;  // the source's name
  std::string fingerprint;
  std::string format;  // "int8_per_token_head"
};
std::string record_text(const EqualizeRecord& record, std::span<const LayerFactors> layers);

}  // namespace fp8kv
