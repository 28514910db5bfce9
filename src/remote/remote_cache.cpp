#include "remote/remote_cache.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "files/file.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// Turns text into the name of one folder or file, without slashes or colons.
std::string as_one_name(std::string text) {
  std::replace(text.begin(), text.end(), '/', '~');
  std::replace(text.begin(), text.end(), ':', '~');
  return text;
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

CachedModel::CachedModel(const fs::path& cache, const RemoteAddress& address,
                         const HubSettings& settings)
    : revision_(address.hub->revision) {
  std::string host = settings.endpoint.host;
  if (!settings.endpoint.port.empty()) host += ":" + settings.endpoint.port;
  entry_ = cache / as_one_name(host + settings.endpoint.path) / as_one_name(address.hub->repo);
  reference_ = entry_ / ("ref-" + as_one_name(revision_));
}

std::optional<std::string> CachedModel::find_commit() const {
  if (is_commit(revision_)) return revision_;
  std::error_code ignored;
  if (!fs::is_regular_file(reference_, ignored)) return std::nullopt;
  const std::string commit = read_regular_text(reference_, 64);
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

void CachedModel::note_commit(const std::string& commit) const {
  if (is_commit(revision_) || find_commit() == commit) return;
  write_file_atomically(reference_, commit, true);
}

}  // namespace fp8kv
