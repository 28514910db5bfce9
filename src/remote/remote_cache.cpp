#include "remote/remote_cache.h"

#include <algorithm>
#include <system_error>

#include "base/digest.h"
#include "base/error.h"
#include "files/file.h"
#include "files/output/write_file.h"
#include "remote/earlier_files.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// Turns text into the name of one folder or file, without slashes or colons.
std::string as_one_name(std::string text) {
  std::replace(text.begin(), text.end(), '/', '~');
  std::replace(text.begin(), text.end(), ':', '~');
  return text;
}

std::string digest_of(const std::string& text, size_t digits) {
  Sha256 digest;
  digest.add(text);
  return digest.hex().substr(0, digits);
}

// A name for a folder's URL that people recognise, and that no other URL has.
std::string folder_name(const Url& folder) {
  constexpr size_t kMostShown = 64;
  std::string path = folder.path;
  while (path.ends_with('/')) path.pop_back();
  std::string last = path.substr(path.rfind('/') + 1);
  if (last.size() > kMostShown) last.resize(kMostShown);
  return cat(as_one_name(last), "-", digest_of(folder.text(), 16));
}

}  // namespace

bool is_commit(const std::string& revision) {
  return revision.size() == 40 && std::all_of(revision.begin(), revision.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

fs::path remote_cache(const Variables& variable) {
  if (const std::string caches = variable("XDG_CACHE_HOME"); caches.starts_with('/')) {
    return fs::path(caches) / "fp8kv";
  }
  const std::string home = variable("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "fp8kv";
}

std::optional<std::string> folder_version(const PartialRecord& record) {
  std::string text;
  for (const auto& [name, file] : record.files) {
    if (!is_strong_etag(file.etag)) return std::nullopt;
    text += cat(name, "\n", file.etag, "\n");
  }
  return digest_of(text, 40);
}

CachedModel::CachedModel(const fs::path& cache, const RemoteAddress& address,
                         const HubSettings& settings, std::string suffix)
    : suffix_(std::move(suffix)) {
  if (!address.hub) {
    entry_ = cache / as_one_name(address.folder.origin()) / folder_name(address.folder);
    reference_ = entry_ / ("ref" + suffix_);
    return;
  }
  const std::string& revision = address.hub->revision;
  std::string host = settings.endpoint.host;
  if (!settings.endpoint.port.empty()) host += ":" + settings.endpoint.port;
  entry_ = cache / as_one_name(host + settings.endpoint.path) / as_one_name(address.hub->repo);
  reference_ = entry_ / ("ref-" + as_one_name(revision));
  if (is_commit(revision)) commit_ = revision;
}

fs::path CachedModel::folder_of(const std::string& version) const {
  return entry_ / (version + suffix_);
}

fs::path CachedModel::unnamed_folder() const {
  std::error_code error;
  fs::create_directories(entry_, error);
  if (!error) return entry_ / ("new" + suffix_);
  Error refused = system_error(entry_.string(), "create folder", error.value());
  throw Error(refused.what(), "pass --no-cache, or set XDG_CACHE_HOME to a folder for the cache",
              ErrorKind::resource);
}

std::optional<std::string> CachedModel::find_version() const {
  if (commit_) return commit_;
  std::error_code ignored;
  if (!fs::is_regular_file(reference_, ignored)) return std::nullopt;
  const std::string version = read_regular_text(reference_, 64);
  return is_commit(version) ? std::optional(version) : std::nullopt;
}

void CachedModel::note_version(const std::string& version) const {
  if (commit_ || find_version() == version) return;
  write_file_atomically(reference_, version, true);
}

}  // namespace fp8kv
