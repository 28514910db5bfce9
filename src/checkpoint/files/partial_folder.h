// A model folder with only parts of its shards: the files have their full length, but only some
// ranges were fetched. A record beside them lists these ranges, so that no hole is taken for zeros.
// Fetches nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/output/copy_file.h"

namespace fp8kv {

inline constexpr const char* kPartialRecord = "fp8kv-remote.json";

struct PartialFile {
  uint64_t bytes = 0;
  std::string etag;
  std::vector<ByteRange> present;  // in order, without overlap

  bool has(uint64_t begin, uint64_t end) const;
  // REQUIRES begin <= end.
  void add(uint64_t begin, uint64_t end);
};

struct PartialRecord {
  std::string address;  // "hf://org/name@commit"
  std::map<std::string, PartialFile> files;

  uint64_t bytes() const;  // the sizes of all files together
};

// Bytes of one file in a folder.
struct FilePart {
  std::string file;
  ByteRange range;
};

// Returns nullopt for a folder without a record, whose files are whole.
std::optional<PartialRecord> read_partial_record(const std::filesystem::path& folder);
std::string partial_record_text(const PartialRecord& record);

}  // namespace fp8kv
