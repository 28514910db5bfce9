#include "calib/run_identity.h"

#include <span>

#include "base/digest.h"
#include "checkpoint/identity/model_identity.h"
#include "files/file.h"

namespace fp8kv {
namespace {

std::string sha256_of(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

std::string value_of(const Checkpoint& checkpoint, const Shard& shard) {
  const uint64_t head =
      shard.header.tensors.empty() ? shard.bytes : shard.header.tensors.front().begin;
  const std::string digest = sha256_of(read_range(checkpoint.folder() / shard.file, 0, head));
  return cat(shard.stamp.bytes, " bytes, changed at ", shard.stamp.modified_ns, " ns, inode ",
             shard.stamp.inode, ", header ", digest.substr(0, 16));
}

}  // namespace

RunIdentity run_identity(const std::string& tool_version, const Checkpoint& checkpoint,
                         const ModelConfig& config,
                         const std::vector<std::vector<int32_t>>& windows, const Backend& backend) {
  checkpoint.check_unchanged();  // its headers are read again
  RunIdentity run;
  const auto add = [&](std::string key, std::string what, std::string value) {
    run.parts.push_back({std::move(key), std::move(what), std::move(value)});
  };
  add("tool_version", "version of fp8kv", tool_version);
  const ModelIdentity model = model_identity(checkpoint, config);
  for (const ConfigNumber& number : model.config) {
    add("config." + number.key, cat(number.key, " in the model's config"), number.value);
  }
  for (const Shard& shard : checkpoint.shards()) {
    add("weights." + shard.file, cat("file of weights ", quote(shard.file)),
        value_of(checkpoint, shard));
  }
  add("model", "model: other weights", fingerprint_of(model) + " " + model.rest);
  add("windows", "text: other data, or other windows or shards of it", windows_digest(windows));
  add("device", "device", device_identity(backend.describe()));
  for (const auto& [name, line] : backend.details()) {
    add("device." + name, cat(name, " of the device"), line);
  }
  return run;
}

std::string windows_digest(const std::vector<std::vector<int32_t>>& windows) {
  Sha256 digest;
  for (const std::vector<int32_t>& window : windows) {
    const uint64_t length = window.size();
    digest.add({reinterpret_cast<const char*>(&length), sizeof length});
    const auto bytes = std::as_bytes(std::span(window));
    digest.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return digest.hex();
}

std::string device_identity(const std::string& description) {
  return description.substr(0, description.rfind(", "));
}

}  // namespace fp8kv
