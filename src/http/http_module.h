// The interface between the program and its HTTP module, in C. No exception and no C++ object
// crosses it, so each side may use another C++ library. It follows no redirects and knows no hub.
#pragma once

#include <cstddef>

namespace fp8kv {

inline constexpr char kHttpModuleEntry[] = "fp8kv_http_module";

extern "C" {

enum HttpOutcome {
  http_done,             // the whole answer was received
  http_stopped,          // a callback asked to stop
  http_address_refused,  // the host has no public address, and one was required
  http_untrusted,        // no known authority signed the host's certificate
  http_failed            // no answer, or only a part: see `message`
};

// One request. The module sets the last three members.
struct HttpTransfer {
  const char* url;
  const char* body;  // the body of a POST; null for a GET
  size_t body_bytes;
  int quiet_seconds;           // a transfer without a byte for this long has stalled; 0 means 30
  const char* const* headers;  // "Name: value"
  size_t n_headers;
  int public_only;  // refuse loopback, private and link-local addresses
  int use_netrc;    // send the credentials of ~/.netrc for this host
  void* context;    // for the two callbacks; a non-zero result of either stops the transfer
  int (*on_header)(void* context, const char* line, size_t bytes);
  int (*on_body)(void* context, const char* bytes, size_t n_bytes);

  HttpOutcome outcome;
  int peer_is_private;  // the address that answered is not public
  char message[256];
};

// Called at least ten times a second, and after every signal. A result of 0 stops all transfers.
struct HttpPulse {
  void* context;
  int (*keep_going)(void* context);
};

// A session keeps connections open between calls of `run`. REQUIRES one thread at a time.
struct HttpModule {
  void* (*open)();
  void (*close)(void* session);
  // Runs all transfers, at most `at_once` of them at a time.
  void (*run)(void* session, HttpTransfer* transfers, size_t count, size_t at_once,
              const HttpPulse* pulse);
};

// The module's entry. Null for a program of another version.
using HttpModuleEntry = const HttpModule* (*)(const char* version);

}  // extern "C"

}  // namespace fp8kv
