// GET and POST requests by the program's HTTP module, several at a time. Follows no redirect, sends
// what it is given and nothing else, and takes no more bytes than it was told to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/http_module.h"

namespace fp8kv {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;      // "Name: value"
  std::optional<std::string> post = {};  // the body of a POST; absent: a GET
  uint64_t max_bytes = 0;                // of the answer's body
  bool keep_errors = false;              // bodies of other answers than 200 and 206 too
  int quiet_seconds = 0;                 // see HttpTransfer
  bool public_only = false;              // see HttpTransfer
  bool use_netrc = false;
};

struct HttpReply {
  int status = 0;                              // 0 where there was none
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of 200 and 206, unless asked for others
  bool too_long = false;                       // it has more bytes than asked for; the body is cut
  bool peer_is_private = false;
  bool address_refused = false;
  bool untrusted = false;  // its certificate
  std::string failure;     // why there is no reply, or only a part of it; "" for a whole one

  // "" when absent.
  std::string header(const std::string& name) const;
};

class HttpClient {
 public:
  // Throws a device error that says how to get the module where it is not there; `or_else` is what
  // to do without it.
  explicit HttpClient(const std::string& or_else = "");
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // A reply for each request, in this order. `pulse` is called ten times a second; what it throws
  // ends all requests and is thrown again here.
  std::vector<HttpReply> run(std::span<const HttpRequest> requests,
                             const std::function<void()>& pulse);

  uint64_t requests() const { return requests_; }
  uint64_t bytes() const { return bytes_; }  // of bodies that were received

 private:
  const HttpModule* module_;
  void* session_;
  uint64_t requests_ = 0, bytes_ = 0;
};

}  // namespace fp8kv
