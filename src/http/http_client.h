// Makes GET and POST requests through the program's HTTP module, several at a time. It follows no
// redirects, sends only the given headers and body, and accepts no more bytes than allowed.
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
  std::optional<std::string> post = {};  // the body of a POST; nullopt for a GET
  uint64_t max_bytes = 0;                // limit for the body of the answer
  bool keep_errors = false;              // also keep the bodies of answers other than 200 and 206
  int quiet_seconds = 0;                 // see HttpTransfer
  bool public_only = false;              // see HttpTransfer
  bool use_netrc = false;
};

struct HttpReply {
  int status = 0;                              // 0 if there was no answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;       // for 200 and 206, or for any status with keep_errors
  bool too_long = false;  // longer than max_bytes; the body is cut
  bool peer_is_private = false;
  bool address_refused = false;
  bool untrusted = false;  // the certificate is not trusted
  std::string failure;     // why there is no reply or only a part; "" for a whole reply

  // Returns "" if the header is absent.
  std::string header(const std::string& name) const;
};

class HttpClient {
 public:
  // Throws a device error if the module is not installed. The message says how to get it; `or_else`
  // says what to do without it.
  explicit HttpClient(const std::string& or_else = "");
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns a reply for each request, in the same order. Calls `pulse` ten times a second. An
  // exception from `pulse` ends all requests and is rethrown here.
  std::vector<HttpReply> run(std::span<const HttpRequest> requests,
                             const std::function<void()>& pulse);

  uint64_t requests() const { return requests_; }
  uint64_t bytes() const { return bytes_; }  // bytes of received bodies

 private:
  const HttpModule* module_;
  void* session_;
  uint64_t requests_ = 0, bytes_ = 0;
};

}  // namespace fp8kv
