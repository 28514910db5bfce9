#include "remote/remote_model.h"

#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "files/output/folder_lock.h"
#include "files/output/made_folder.h"
#include "remote/remote_cache.h"

namespace fp8kv {

namespace fs = std::filesystem;

namespace {

bool have_recorded_sizes(const fs::path& folder, const PartialRecord& record) {
  for (const auto& [name, file] : record.files) {
    if (regular_file_size(folder / name) != file.bytes) return false;
  }
  return true;
}

// Whether the folder is an entry of the cache with all that the reader reads.
bool is_complete(const fs::path& folder, const RemoteReader& reader) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return false;
  try {
    const auto record = read_partial_record(folder);
    return record && have_recorded_sizes(folder, *record) && reader.is_complete(folder, *record);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return false;  // damaged, so it is read again
  }
}

// Frees the name of an entry. Removes what this program made and nobody changed. Anything else is
// kept under another name.
void set_aside(const fs::path& entry) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(entry, error))) return;
  try {
    check_made_folder(entry, entry);
    return remove_made_folder(entry);
  } catch (const Error& refused) {
    if (refused.kind() == ErrorKind::interrupted) throw;
  }
  fs::path kept = entry;
  for (int i = 1; fs::exists(fs::symlink_status(kept, error)); ++i) {
    kept = cat(entry.string(), ".damaged-", i);
  }
  fs::rename(entry, kept, error);
  if (error) fail_system(entry.string(), "rename", error.value());
}

// Makes the folder an entry of the cache, unless another process has made this entry first.
void publish(std::unique_ptr<StagedDirectory> staged, const fs::path& entry,
             const RemoteReader& reader) {
  const FolderLock lock(entry.parent_path());
  if (is_complete(entry, reader)) return;
  // An incomplete entry is damaged, or comes from a version that needed less.
  set_aside(entry);
  staged->publish_as(entry);
}

}  // namespace

// One call of RemoteModel::read.
class RemoteReading {
 public:
  RemoteReading(const RemoteAddress& address, const RemoteReader& reader, bool use_cache, Log& log)
      : address_(address), reader_(reader), log_(log), settings_(hub_settings()) {
    const fs::path cache = remote_cache();
    if (use_cache && !cache.empty()) cached_.emplace(cache, address, settings_, reader.suffix);
  }

  RemoteModel run() {
    const auto earlier = cached_ ? cached_->find_version() : std::nullopt;
    if (settings_.offline || (address_.hub && is_commit(address_.hub->revision))) {
      if (earlier && is_complete(cached_->folder_of(*earlier), reader_)) {
        return from_cache("nothing", *earlier);
      }
      if (settings_.offline) fail_offline();
    }
    RemoteFiles files(address_, settings_, log_);
    if (earlier && !address_.hub) {
      files.take_unchanged_from(EarlierFiles(cached_->folder_of(*earlier)));
    }
    reader_.begin(files);
    const bool has_version = address_.hub ? !files.commit().empty() : files.has_versions();
    if (!has_version) cached_.reset();
    if (cached_ && address_.hub && is_complete(cached_->folder_of(files.commit()), reader_)) {
      return from_cache(how_much(files), files.commit());
    }
    return read(files, earlier);
  }

 private:
  RemoteModel read(RemoteFiles& files, const std::optional<std::string>& earlier) {
    auto staged = std::make_unique<StagedDirectory>(
        cached_ ? cached_->unnamed_folder() : fs::temp_directory_path() / "fp8kv-remote-model",
        false);
    const PartialRecord record = reader_.fill(files, staged->path());
    const auto version = address_.hub ? files.commit() : folder_version(record);
    if (!cached_ || !version) {
      note_read(files, record);
      RemoteModel model;
      model.folder_ = staged->path();
      model.staged_ = std::move(staged);
      return model;
    }
    publish(std::move(staged), cached_->folder_of(*version), reader_);
    if (version == earlier && !address_.hub) return from_cache(how_much(files), *version);
    note_read(files, record);
    return kept(*version);
  }

  RemoteModel kept(const std::string& version) const {
    cached_->note_version(version);
    RemoteModel model;
    model.folder_ = cached_->folder_of(version);
    return model;
  }

  RemoteModel from_cache(const std::string& how_much, const std::string& version) const {
    log_.note(cat("read ", how_much, ": the cache has what is needed of ", quote(address_.text()),
                  " (", quote(cached_->folder_of(version).string()), ")"));
    return kept(version);
  }

  static std::string how_much(const RemoteFiles& files) {
    return cat(human_bytes(files.bytes()), " in ", count_of(files.requests(), "request"));
  }

  void note_read(const RemoteFiles& files, const PartialRecord& record) const {
    // Answers for files that are missing count too, so small models can cost more than they have.
    const bool is_part = files.bytes() < record.bytes();
    log_.note(is_part
                  ? cat("read ", human_bytes(files.bytes()), " of ", human_bytes(record.bytes()),
                        " in ", count_of(files.requests(), "request"))
                  : cat("read ", how_much(files)));
  }

  [[noreturn]] void fail_offline() const {
    throw Error(
        cat(quote(address_.text()), ": HF_HUB_OFFLINE is set, and the cache does not have it"),
        "unset HF_HUB_OFFLINE, or name a folder that is here", ErrorKind::usage);
  }

  const RemoteAddress& address_;
  const RemoteReader& reader_;
  Log& log_;
  HubSettings settings_;
  std::optional<CachedModel> cached_;
};

RemoteModel RemoteModel::read(const RemoteAddress& address, const RemoteReader& reader,
                              bool use_cache, Log& log) {
  return RemoteReading(address, reader, use_cache, log).run();
}

}  // namespace fp8kv
