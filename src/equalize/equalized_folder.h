// A new checkpoint folder: an old one with factors folded into its weights. The old one is never
// modified. All bytes but those of the weights that take factors stay, and stay where they are.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/config.h"
#include "equalize/find_exponents.h"
#include "scales/write/inject.h"

namespace fp8kv {

// The record in the folder: what was done, and to which model.
inline constexpr const char* kEqualizeRecord = "fp8kv_equalize.json";

// Throws where no such folder can be made, whatever the factors will be: `out` is taken or within
// the source, the source has KV scales already or was equalised before.
void check_equalizable(const Checkpoint& checkpoint, const std::filesystem::path& out,
                       bool overwrite);

struct EqualizedFiles {
  std::vector<InjectedFile> files;   // by name
  std::vector<std::string> skipped;  // what was left behind, with the reason
  uint64_t written_bytes = 0;
};

// Fills the new folder `to`: shards with their factors, `record`, everything else copied, but for
// hidden folders and for files of weights that the checkpoint does not read.
EqualizedFiles write_equalized(const Checkpoint& checkpoint, const ModelConfig& config,
                               std::span<const LayerFactors> layers, const std::string& record,
                               const std::filesystem::path& to);

// The text of the record. `fingerprint`: of the model that it was made from.
struct EqualizeRecord {
  std::string tool_version;
  std::string model;  // the source's name
  std::string fingerprint;
  std::string format;  // "int8_per_token_head"
};
std::string record_text(const EqualizeRecord& record, std::span<const LayerFactors> layers);

}  // namespace fp8kv
