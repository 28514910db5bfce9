// Files of a model at an address, whole or in parts. Follows redirects, tries again where that
// helps, and holds every part to the version that the first one was of. Writes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "files/file.h"
#include "http/http_client.h"
#include "remote/hub_settings.h"
#include "remote/remote_address.h"

namespace fp8kv {

// A part of a file, or all of it.
struct RemoteRequest {
  std::string file;                // relative to the model's folder
  std::optional<ByteRange> range;  // cut at the end of the file; absent: all of it
  uint64_t max_bytes = 0;          // where it is all of it
  bool may_be_absent = false;
};

struct RemoteBytes {
  bool absent = false;
  std::string bytes;
  uint64_t file_bytes = 0;  // of the whole file
  std::string etag;
};

class RemoteFiles {
 public:
  // Opens no connection yet. Throws where the HTTP module is not there.
  RemoteFiles(RemoteAddress address, HubSettings settings, Log& log);

  // A result for each request, in this order. The first call pins the commit of a hub's model: all
  // later ones read that. Throws, naming address and file, for what cannot be had.
  std::vector<RemoteBytes> read(std::span<const RemoteRequest> requests);

  const RemoteAddress& address() const { return address_; }
  // "" unless the server named one.
  const std::string& commit() const { return commit_; }
  uint64_t requests() const { return client_.requests(); }
  uint64_t bytes() const { return client_.bytes(); }

 private:
  struct Pending;
  // The known version of a file, and the end of its redirects.
  struct Known {
    std::string linked_etag, etag;
    std::optional<uint64_t> bytes;
    std::optional<Url> location;
  };

  Url url_of(const std::string& file) const;
  HttpRequest http_request(const Pending& pending) const;
  bool take(Pending& pending, HttpReply& reply, RemoteBytes& out);
  void follow(Pending& pending, const HttpReply& reply);
  void try_again(Pending& pending, const HttpReply& reply);
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
  bool is_private_ = false;  // the address itself is of a private network
};

}  // namespace fp8kv
