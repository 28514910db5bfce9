#include "remote/remote_model.h"

#include <system_error>

#include "base/error.h"
#include "remote/read_parts.h"
#include "remote/remote_cache.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// The size of all shards in bytes, if the folder holds every needed tensor; else nullopt.
std::optional<uint64_t> find_complete(const fs::path& folder, const NeededTensors& needed) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return std::nullopt;
  try {
    const auto record = read_partial_record(folder);
    if (!record) return std::nullopt;
    const Checkpoint checkpoint = Checkpoint::open(folder);
    uint64_t bytes = 0;
    for (const Shard& shard : checkpoint.shards()) bytes += shard.bytes;
    for (const std::string& name : needed(checkpoint)) {
      const TensorLocation& place = checkpoint.tensors().at(name);
      const PartialFile& file = record->files.at(checkpoint.shards()[place.shard].file);
      if (!file.has(place.entry.begin, place.entry.end)) return std::nullopt;
    }
    return bytes;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return std::nullopt;  // damaged, so it is read again
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

fs::path with_parent(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) fail_system(path.parent_path().string(), "create folder", error.value());
  return path;
}

std::string how_much(const RemoteFiles& files) {
  return cat(human_bytes(files.bytes()), " in ", count_of(files.requests(), "request"));
}

// Publishes the folder, unless another process has published a complete one first.
void publish(std::unique_ptr<StagedDirectory> staged, const fs::path& target,
             const NeededTensors& needed) {
  try {
    staged->publish();
  } catch (const Error&) {
    staged.reset();
    if (!find_complete(target, needed)) throw;
  }
}

[[noreturn]] void fail_offline(const RemoteAddress& address) {
  throw Error(cat(quote(address.text()), ": HF_HUB_OFFLINE is set, and the cache does not have it"),
              "unset HF_HUB_OFFLINE, or name a folder that is here", ErrorKind::usage);
}

}  // namespace

RemoteModel RemoteModel::read(const RemoteAddress& address, bool use_cache,
                              const NeededTensors& needed, Log& log) {
  const HubSettings settings = hub_settings();
  std::optional<CachedModel> cached;
  if (const fs::path cache = remote_cache(); address.hub && use_cache && !cache.empty()) {
    cached.emplace(cache, address, settings);
  }
  const auto take_cached = [&](const std::string& commit) -> std::optional<RemoteModel> {
    if (!cached) return std::nullopt;
    const auto bytes = find_complete(cached->folder_of(commit), needed);
    if (!bytes) return std::nullopt;
    RemoteModel model;
    model.folder_ = cached->folder_of(commit);
    return model;
  };
  if (settings.offline || (address.hub && is_commit(address.hub->revision))) {
    const auto commit = cached ? cached->find_commit() : std::nullopt;
    auto model = commit ? take_cached(*commit) : std::nullopt;
    if (model) {
      log.note(cat("read nothing of ", quote(address.text()), ": the cache has what is needed (",
                   quote(model->folder().string()), ")"));
      return std::move(*model);
    }
    if (settings.offline) fail_offline(address);
  }
  RemoteFiles files(address, settings, log);
  const std::string config = read_remote_config(files);
  if (files.commit().empty()) cached.reset();
  if (auto model = take_cached(files.commit())) {
    log.note(cat("read ", how_much(files), ": the cache has what is needed of ",
                 quote(address.text()), " (", quote(model->folder().string()), ")"));
    cached->note_commit(files.commit());
    return std::move(*model);
  }
  RemoteModel model;
  model.folder_ = cached ? with_parent(cached->folder_of(files.commit()))
                         : fs::temp_directory_path() / "fp8kv-remote-model";
  // An incomplete entry is damaged, or comes from a version that needed less.
  std::error_code ignored;
  if (cached) fs::remove_all(model.folder_, ignored);
  auto staged = std::make_unique<StagedDirectory>(model.folder_, false);
  const uint64_t all = read_parts(files, config, staged->path(), needed);
  log.note(cat("read ", human_bytes(files.bytes()), " of ", human_bytes(all), " in ",
               count_of(files.requests(), "request")));
  if (!cached) {
    model.folder_ = staged->path();
    model.staged_ = std::move(staged);
    return model;
  }
  publish(std::move(staged), model.folder_, needed);
  cached->note_commit(files.commit());
  return model;
}

}  // namespace fp8kv
