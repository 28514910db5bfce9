// A hub on 127.0.0.1 for tests. Serves folders as ORG/NAME/resolve/REVISION/FILE, and shards from
// another host name, like the hub's storage. Records all requests. A test can replace any answer.
// It never looks at a clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fp8kv::test {

struct HubAsk {
  std::string target;              // the target in the request line, GET or POST
  std::string host;                // host and port
  std::string range;               // "bytes=0-99"; "": the whole file
  std::string authorization;       // "": no such header
  std::string body;                // the body of a POST
  size_t nth = 0;                  // number of earlier requests
  std::string if_none_match = {};  // ETags; "": no such header
  std::string if_range = {};
};

struct HubAnswer {
  int status = 200;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
  std::optional<size_t> cut_after = {};  // closes the connection after this many bytes of the body
};

inline constexpr const char* kHubCommit = "0123456789abcdef0123456789abcdef01234567";

class HubServer {
 public:
  using InPlace = std::function<std::optional<HubAnswer>(const HubAsk&)>;

  // Serves the files of `root`/ORG/NAME.
  explicit HubServer(std::filesystem::path root, InPlace in_place = {});
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  std::string endpoint() const;  // "http://127.0.0.1:PORT"
  std::string storage() const;   // "http://localhost:PORT"
  std::vector<HubAsk> asked() const;
  uint64_t body_bytes() const { return body_bytes_; }
  // The default answer, if no test replaces it.
  HubAnswer answer(const HubAsk& ask) const;

 private:
  void accept_all();
  void serve(int connection);
  HubAnswer file_answer(const std::filesystem::path& path, const HubAsk& ask) const;

  std::filesystem::path root_;
  InPlace in_place_;
  int listening_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  mutable std::mutex mutex_;
  std::vector<std::thread> servers_;
  std::vector<int> connections_;
  std::vector<HubAsk> asked_;
  std::atomic<uint64_t> body_bytes_ = 0;
};

}  // namespace fp8kv::test
