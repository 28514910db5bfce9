// Reads files of a model at an address, whole or in parts. It follows redirects and retries where
// that helps. All parts of a file must be of the same version. Writes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "files/output/copy_file.h"
#include "http/http_client.h"
#include "remote/earlier_files.h"
#include "remote/hub_settings.h"
#include "remote/remote_address.h"

namespace fp8kv {

// A part of a file, or all of it.
struct RemoteRequest {
  std::string file;                // relative to the model's folder
  std::optional<ByteRange> range;  // truncated at the end of the file; nullopt: the whole file
  uint64_t max_bytes = 0;          // limit for a whole file
  bool may_be_absent = false;
};

struct RemoteBytes {
  bool absent = false;
  std::string bytes;
  uint64_t file_bytes = 0;  // size of the whole file
  std::string etag;
};

class RemoteFiles {
 public:
  // Opens no connection yet. Throws if the HTTP module is not installed.
  RemoteFiles(RemoteAddress address, HubSettings settings, Log& log);

  // Files that were read before from the folder at this address. Their bytes are taken where the
  // server says that the file is unchanged, by its strong ETag. REQUIRES a folder's address.
  void take_unchanged_from(EarlierFiles earlier) { earlier_ = std::move(earlier); }

  // Returns a result for each request, in the same order. For a model of the hub, the first call
  // pins the commit that all later calls read. Throws, naming address and file, if a file cannot be
  // read.
  std::vector<RemoteBytes> read(std::span<const RemoteRequest> requests);

  const RemoteAddress& address() const { return address_; }
  // The commit of a hub model; "" unless the server named one.
  const std::string& commit() const { return commit_; }
  // Whether every file that was read had a strong ETag.
  bool has_versions() const { return has_versions_; }
  uint64_t requests() const { return client_.requests(); }
  uint64_t bytes() const { return client_.bytes(); }

 private:
  struct Pending;
  // The known version of a file, and the URL at the end of its redirects.
  struct Known {
    std::string linked_etag, etag;
    std::optional<uint64_t> bytes;
    std::optional<Url> location;

    // The ETag that the address reports, or else the server that sent the bytes.
    const std::string& version() const { return linked_etag.empty() ? etag : linked_etag; }
  };

  Url url_of(const std::string& file) const;
  Pending first_request(const RemoteRequest& request, size_t index) const;
  bool find_verified(const RemoteRequest& request, RemoteBytes& out) const;
  void add_conditions(Pending& pending, HttpRequest& out) const;
  HttpRequest http_request(Pending& pending) const;
  bool take(Pending& pending, HttpReply& reply, RemoteBytes& out);
  void follow(Pending& pending, const HttpReply& reply);
  void try_again(Pending& pending, const HttpReply& reply);
  void take_unchanged(const Pending& pending, RemoteBytes& out);
  void take_content(const Pending& pending, HttpReply& reply, RemoteBytes& out);
  void note_version(const Pending& pending, const HttpReply& reply);
  void check_version(const Pending& pending, const HttpReply& reply, uint64_t file_bytes);
  bool sends_token(const Url& url) const;

  RemoteAddress address_;
  HubSettings settings_;
  Log& log_;
  HttpClient client_;
  std::string commit_;
  std::map<std::string, Known> known_;
  EarlierFiles earlier_;
  bool has_versions_ = true;
  bool is_private_ = false;  // the address itself is in a private network
};

}  // namespace fp8kv
