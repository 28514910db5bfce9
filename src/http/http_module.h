// The interface of the program and its HTTP module, as C: no exception and no C++ object
// crosses, so each of them may have a C++ library of its own. Follows no redirect and knows no hub.
#pragma once

#include <cstddef>

namespace fp8kv {

inline constexpr char kHttpModuleEntry[] = "fp8kv_http_module";

extern "C" {

enum HttpOutcome {
  http_done,             // the whole answer was received
  http_stopped,          // a callback asked to stop
  http_address_refused,  // the host has no public address, and one was required
  http_untrusted,        // the host's certificate is of no authority that is known here
  http_failed            // no answer, or a part of it: `message` says why
};

// One request. The module fills in the last three.
struct HttpTransfer {
  const char* url;
  const char* body;  // of a POST; null for a GET
  size_t body_bytes;
  int quiet_seconds;           // a transfer without a byte for so long has stalled; 0: for 30
  const char* const* headers;  // "Name: value"
  size_t n_headers;
  int public_only;  // connect to no loopback, private or link-local address
  int use_netrc;    // credentials of ~/.netrc for this host
  void* context;    // of the two callbacks, which stop the transfer when they return non-zero
  int (*on_header)(void* context, const char* line, size_t bytes);
  int (*on_body)(void* context, const char* bytes, size_t n_bytes);

  HttpOutcome outcome;
  int peer_is_private;  // the address that answered is not public
  char message[256];
};

// Asked at least ten times a second, and after every signal; 0 stops all transfers.
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
