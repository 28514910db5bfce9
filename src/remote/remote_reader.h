// A kind of content to read from a remote model: what scales need, or a tokenizer's files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "checkpoint/files/partial_folder.h"
#include "remote/remote_files.h"

namespace fp8kv {

struct RemoteReader {
  std::string suffix;  // of the content's folder in the cache
  // Reads a first file. For a model of the hub this pins the commit that all later calls read.
  std::function<void(RemoteFiles&)> begin;
  // Fills an empty folder and returns its record, which is also in the folder. Call it after
  // `begin`.
  std::function<PartialRecord(RemoteFiles&, const std::filesystem::path& folder)> fill;
  // Whether a folder has all that `fill` would read. The sizes of its files are those of the
  // record. Throws an Error for faults in the files.
  std::function<bool(const std::filesystem::path& folder, const PartialRecord&)> is_complete;
};

// Adds a whole file to a folder and to its record. Does nothing for an absent file.
void add_whole_file(const std::filesystem::path& folder, const std::string& name,
                    const RemoteBytes& bytes, PartialRecord& record);

// The address for the record: "hf://org/name@commit", or the URL of a folder.
std::string recorded_address(const RemoteFiles& files);

void write_partial_record(const std::filesystem::path& folder, const PartialRecord& record);

}  // namespace fp8kv
