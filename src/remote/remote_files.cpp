#include "remote/remote_files.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "remote/remote_cache.h"
#include "remote/remote_refusals.h"

namespace fp8kv {

using Clock = std::chrono::steady_clock;

// One request until it is answered, with its redirects and retries.
struct RemoteFiles::Pending {
  const RemoteRequest* request;
  size_t index;
  Url url;
  bool redirected = false;
  bool from_memory = false;  // `url` is the end of an earlier redirect
  bool if_changed = false;   // asks for the bytes only if they changed since earlier
  bool if_same = false;      // asks for the part only if the file is still of the known version
  bool no_if_same = false;   // the server does not understand `if_same`
  int hops = 0;
  int tries = 1;
  Clock::time_point not_before = {};
};

namespace {

constexpr int kMostHops = 5;
constexpr int kMostTries = 4;
constexpr int64_t kLongestWaitSeconds = 60;
constexpr auto kNap = std::chrono::milliseconds(20);

struct ContentRange {
  uint64_t begin, end, total;
};

// Parses a Content-Range header: "bytes 0-99/1234".
std::optional<ContentRange> content_range(const std::string& text) {
  ContentRange range{};
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip = [&](std::string_view expected) {
    if (!std::string_view(at, static_cast<size_t>(end - at)).starts_with(expected)) return false;
    at += expected.size();
    return true;
  };
  const auto number = [&](uint64_t& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc();
  };
  const bool read = skip("bytes ") && number(range.begin) && skip("-") && number(range.end) &&
                    skip("/") && number(range.total) && at == end;
  if (!read || range.end < range.begin || range.end >= range.total) return std::nullopt;
  ++range.end;
  return range;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_passing(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

// The seconds to wait before the next try. The first retry is immediate unless the server asks for
// a delay.
int64_t wait_seconds(const HttpReply& reply, int tries) {
  const std::string after = reply.header("retry-after");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), seconds);
  if (error == std::errc() && end == after.data() + after.size() && seconds >= 0) return seconds;
  return tries == 1 ? 0 : int64_t{1} << (tries - 2);
}

}  // namespace

RemoteFiles::RemoteFiles(RemoteAddress address, HubSettings settings, Log& log)
    : address_(std::move(address)),
      settings_(std::move(settings)),
      log_(log),
      client_("fetch the model, with 'hf download', and name its folder") {
  is_private_ = is_private_name(address_.hub ? settings_.endpoint : address_.folder);
}

Url RemoteFiles::url_of(const std::string& file) const {
  Url url = address_.hub ? settings_.endpoint : address_.folder;
  if (!address_.hub) {
    url.path += escaped_path(file);
    return url;
  }
  // A revision is one part of the path, so "refs/pr/1" becomes refs%2Fpr%2F1.
  std::string revision = escaped_path(commit_.empty() ? address_.hub->revision : commit_);
  for (size_t at = 0; (at = revision.find('/', at)) != revision.npos;)
    revision.replace(at, 1, "%2F");
  url.path += cat("/", address_.hub->repo, "/resolve/", revision, "/", escaped_path(file));
  return url;
}

bool RemoteFiles::sends_token(const Url& url) const {
  return address_.hub && !settings_.token.empty() && url.origin() == settings_.endpoint.origin();
}

RemoteFiles::Pending RemoteFiles::first_request(const RemoteRequest& request, size_t index) const {
  const auto known = known_.find(request.file);
  const bool moved = known != known_.end() && known->second.location;
  Pending pending{&request, index, moved ? *known->second.location : url_of(request.file)};
  pending.from_memory = moved;
  return pending;
}

// Takes a part from the earlier files if this run has already seen that the file is unchanged.
bool RemoteFiles::find_verified(const RemoteRequest& request, RemoteBytes& out) const {
  const std::string etag = earlier_.etag_of(request.file, request.range);
  const auto known = known_.find(request.file);
  if (etag.empty() || known == known_.end() || known->second.version() != etag) return false;
  out = {false, earlier_.read(request.file, request.range), earlier_.file_bytes(request.file),
         etag};
  return true;
}

// Files of a hub's commit never change. In a folder they do, so the server is asked to compare.
void RemoteFiles::add_conditions(Pending& pending, HttpRequest& out) const {
  if (address_.hub) return;
  const RemoteRequest& request = *pending.request;
  const auto known = known_.find(request.file);
  const std::string version = known == known_.end() ? "" : known->second.etag;
  const std::string earlier = earlier_.etag_of(request.file, request.range);
  pending.if_changed = version.empty() && !earlier.empty();
  pending.if_same = request.range && is_strong_etag(version) && !pending.no_if_same;
  if (pending.if_changed) out.headers.push_back("If-None-Match: " + earlier);
  if (pending.if_same) out.headers.push_back("If-Range: " + version);
}

HttpRequest RemoteFiles::http_request(Pending& pending) const {
  HttpRequest out;
  out.url = pending.url.text();
  out.max_bytes = pending.request->max_bytes;
  out.headers.push_back("Accept-Encoding: identity");
  if (const auto& range = pending.request->range) {
    out.headers.push_back(cat("Range: bytes=", range->begin, "-", range->end - 1));
    out.max_bytes = range->end - range->begin;
  }
  add_conditions(pending, out);
  if (sends_token(pending.url)) out.headers.push_back("Authorization: Bearer " + settings_.token);
  out.public_only = (pending.redirected || pending.from_memory) && !is_private_;
  out.use_netrc = !address_.hub;
  return out;
}

std::vector<RemoteBytes> RemoteFiles::read(std::span<const RemoteRequest> requests) {
  std::vector<RemoteBytes> results(requests.size());
  std::vector<Pending> pending;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!find_verified(requests[i], results[i])) pending.push_back(first_request(requests[i], i));
  }
  Progress progress(log_, "reading " + address_.text(), pending.size());
  while (!pending.empty()) {
    std::vector<Pending> due, later;
    const auto now = Clock::now();
    for (Pending& each : pending) {
      (each.not_before <= now ? due : later).push_back(std::move(each));
    }
    std::vector<HttpRequest> asked;
    for (Pending& each : due) asked.push_back(http_request(each));
    std::vector<HttpReply> replies = client_.run(asked, [&] { progress.advance(0); });
    for (size_t i = 0; i < due.size(); ++i) {
      if (take(due[i], replies[i], results[due[i].index])) {
        progress.advance();
      } else {
        later.push_back(std::move(due[i]));
      }
    }
    pending = std::move(later);
    if (due.empty()) std::this_thread::sleep_for(kNap);
    progress.advance(0);
  }
  return results;
}

// Returns true if `out` is complete; else `pending` has the next request.
bool RemoteFiles::take(Pending& pending, HttpReply& reply, RemoteBytes& out) {
  const Asked asked{address_, pending.request->file, pending.url, sends_token(pending.url)};
  const bool of_address = !pending.redirected && !pending.from_memory;
  if (of_address) is_private_ = is_private_ || reply.peer_is_private;
  if (reply.address_refused) {
    throw redirect_error(asked, "to an address of a private network, which is not followed");
  }
  if (reply.untrusted) throw untrusted_error(asked);
  if (!reply.failure.empty() || is_passing(reply.status)) return try_again(pending, reply), false;
  if (of_address) note_version(pending, reply);
  if (is_redirect(reply.status)) return follow(pending, reply), false;
  if (pending.from_memory && (reply.status == 401 || reply.status == 403)) {
    // Signed URLs of a storage expire after some minutes. The hub gives a new one.
    known_[pending.request->file].location.reset();
    pending.from_memory = false;
    pending.url = url_of(pending.request->file);
    return false;
  }
  const bool told_hub = reply.header("x-error-code") == "RepoNotFound" ||
                        reply.header("x-error-code") == "RevisionNotFound";
  if (reply.status == 404 && pending.request->may_be_absent && !told_hub) {
    out.absent = true;
    return true;
  }
  if (reply.status == 304 && pending.if_changed) {
    take_unchanged(pending, out);
    if (pending.redirected) known_[pending.request->file].location = pending.url;
    return true;
  }
  if (reply.status == 200 && pending.if_same &&
      reply.header("etag") == known_[pending.request->file].etag) {
    // Some servers answer If-Range with the whole file even if it is unchanged.
    pending.no_if_same = true;
    return false;
  }
  const auto& range = pending.request->range;
  const bool empty = reply.status == 416 && range && range->begin == 0;
  if (reply.status != 200 && reply.status != 206 && !empty) throw status_error(asked, reply);
  if (!empty) take_content(pending, reply, out);
  if (pending.redirected) known_[pending.request->file].location = pending.url;
  return true;
}

void RemoteFiles::follow(Pending& pending, const HttpReply& reply) {
  const Asked asked{address_, pending.request->file, pending.url};
  if (++pending.hops > kMostHops) throw redirect_error(asked, "in a circle");
  const auto next = redirected(pending.url, reply.header("location"));
  if (!next) throw redirect_error(asked, "to what is no address");
  if (pending.url.scheme == "https" && next->scheme == "http") {
    throw redirect_error(asked, "from https to http, which is not followed");
  }
  if (is_private_name(*next) && !is_private_) {
    throw redirect_error(asked, "to an address of a private network, which is not followed");
  }
  pending.url = *next;
  pending.redirected = true;
}

void RemoteFiles::try_again(Pending& pending, const HttpReply& reply) {
  const Asked asked{address_, pending.request->file, pending.url};
  const int64_t seconds = wait_seconds(reply, pending.tries);
  if (pending.tries >= kMostTries || seconds > kLongestWaitSeconds) {
    throw unreachable_error(asked, reply, pending.tries);
  }
  const std::string why = reply.failure.empty() ? cat("HTTP ", reply.status) : reply.failure;
  log_.detail(cat(shown(asked), ": ", why, "; trying again in ", seconds, " s"));
  ++pending.tries;
  pending.not_before = Clock::now() + std::chrono::seconds(seconds);
}

// Notes the version of a file that the address itself reports, before any redirect.
void RemoteFiles::note_version(const Pending& pending, const HttpReply& reply) {
  const Asked asked{address_, pending.request->file, pending.url};
  const std::string commit = reply.header("x-repo-commit");
  if (address_.hub && is_commit(commit)) {
    if (commit_.empty()) commit_ = commit;
    if (commit != commit_) {
      throw changed_error(asked, cat("it is of the commit ", commit, ", expected ", commit_));
    }
  }
  const std::string etag = reply.header("x-linked-etag");
  Known& known = known_[pending.request->file];
  if (!etag.empty() && !known.linked_etag.empty() && etag != known.linked_etag) {
    throw changed_error(asked, "its ETag is another one");
  }
  if (!etag.empty()) known.linked_etag = etag;
}

void RemoteFiles::check_version(const Pending& pending, const HttpReply& reply,
                                uint64_t file_bytes) {
  const Asked asked{address_, pending.request->file, pending.url};
  Known& known = known_[pending.request->file];
  const std::string etag = reply.header("etag");
  if (!known.etag.empty() && etag != known.etag) {
    throw changed_error(asked, "its ETag is another one");
  }
  if (known.bytes && *known.bytes != file_bytes) {
    throw changed_error(
        asked, cat("it has ", grouped(file_bytes), " bytes, expected ", grouped(*known.bytes)));
  }
  known.etag = etag;
  known.bytes = file_bytes;
}

void RemoteFiles::take_unchanged(const Pending& pending, RemoteBytes& out) {
  const RemoteRequest& request = *pending.request;
  const Asked asked{address_, request.file, pending.url};
  const std::string etag = earlier_.etag_of(request.file, request.range);
  Known& known = known_[request.file];
  // Another answer may have come for the same file meanwhile.
  if (!known.version().empty() && known.version() != etag) {
    throw changed_error(asked, "its ETag is another one");
  }
  out = {false, earlier_.read(request.file, request.range), earlier_.file_bytes(request.file),
         etag};
  if (known.linked_etag.empty()) known.etag = etag;
  known.bytes = out.file_bytes;
}

void RemoteFiles::take_content(const Pending& pending, HttpReply& reply, RemoteBytes& out) {
  const RemoteRequest& request = *pending.request;
  const Asked asked{address_, request.file, pending.url};
  if (request.range && reply.status == 200) {
    // Some servers also send a file whole if it has changed.
    const std::string known = known_[request.file].etag;
    const std::string etag = reply.header("etag");
    if (!known.empty() && !etag.empty() && known != etag) {
      throw changed_error(asked, "its ETag is another one");
    }
    if (reply.too_long || request.range->begin != 0) throw ranges_ignored_error(asked);
  }
  if (reply.too_long) {
    throw Error(cat(shown(asked), ": is longer than the ", human_bytes(request.max_bytes),
                    " that are accepted here"));
  }
  out.file_bytes = reply.body.size();
  if (request.range && reply.status == 206) {
    const auto range = content_range(reply.header("content-range"));
    const bool fits = range && range->begin == request.range->begin &&
                      range->end == std::min(request.range->end, range->total) &&
                      reply.body.size() == range->end - range->begin;
    if (!fits) {
      throw Error(cat(shown(asked), ": ", asked.url.host, " sent another part than was asked for"),
                  "try again", ErrorKind::resource);
    }
    out.file_bytes = range->total;
  }
  check_version(pending, reply, out.file_bytes);
  out.etag = known_[request.file].version();
  has_versions_ = has_versions_ && is_strong_etag(out.etag);
  out.bytes = std::move(reply.body);
}

}  // namespace fp8kv
