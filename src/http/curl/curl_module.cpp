// The HTTP module, built on libcurl. It throws no exceptions.
#include <cstdlib>
#include <cstring>
#include <curl/curl.h>
#include <memory>
#include <sys/socket.h>
#include <vector>

#include "http/curl/proxy_addresses.h"
#include "http/http_module.h"
#include "http/private_address.h"

namespace fp8kv {
namespace {

constexpr long kConnectSeconds = 20;
// A transfer with less than a byte per second for this long has stalled, unless the caller sets
// another time.
constexpr long kStalledSeconds = 30;
constexpr int kPulseMs = 100;

struct Session {
  CURLM* multi = curl_multi_init();
  ProxyAddresses proxies;
};

// A running transfer, and the libcurl objects made for it.
struct Running {
  Running(HttpTransfer& its, const ProxyAddresses& known)
      : transfer(&its), proxies(known), easy(curl_easy_init()) {}
  ~Running() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  HttpTransfer* transfer;
  const ProxyAddresses& proxies;
  CURL* easy;
  curl_slist* headers = nullptr;
  bool refused = false;
  bool stopped = false;
};

size_t take_header(char* bytes, size_t size, size_t n, void* context) {
  auto& running = *static_cast<Running*>(context);
  running.stopped |= running.transfer->on_header(running.transfer->context, bytes, size * n) != 0;
  return running.stopped ? 0 : size * n;
}

size_t take_body(char* bytes, size_t size, size_t n, void* context) {
  auto& running = *static_cast<Running*>(context);
  running.stopped |= running.transfer->on_body(running.transfer->context, bytes, size * n) != 0;
  return running.stopped ? 0 : size * n;
}

curl_socket_t open_socket(void* context, curlsocktype, curl_sockaddr* address) {
  auto& running = *static_cast<Running*>(context);
  const bool refused = running.transfer->public_only && is_private_address(&address->addr) &&
                       !running.proxies.has(&address->addr);
  if (refused) {
    running.refused = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// The certificate file from the variables that other tools use. libcurl itself reads none of them.
const char* certificates() {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}) {
    const char* value = std::getenv(name);
    if (value && *value) return value;
  }
  return nullptr;
}

void restrict_protocols(CURL* easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
}

void set_up(Running& running) {
  CURL* easy = running.easy;
  const HttpTransfer& transfer = *running.transfer;
  for (size_t i = 0; i < transfer.n_headers; ++i) {
    running.headers = curl_slist_append(running.headers, transfer.headers[i]);
  }
  restrict_protocols(easy);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &running);
  curl_easy_setopt(easy, CURLOPT_URL, transfer.url);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, running.headers);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "fp8kv/" FP8KV_VERSION);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                   transfer.quiet_seconds > 0 ? long{transfer.quiet_seconds} : kStalledSeconds);
  if (transfer.body) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(transfer.body_bytes));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.body);
  }
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (transfer.use_netrc) {
    curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  }
  if (const char* bundle = certificates()) curl_easy_setopt(easy, CURLOPT_CAINFO, bundle);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &running);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &running);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &running);
}

void say(HttpTransfer& transfer, HttpOutcome outcome, const char* message) {
  transfer.outcome = outcome;
  std::strncpy(transfer.message, message, sizeof transfer.message - 1);
  transfer.message[sizeof transfer.message - 1] = '\0';
}

void finish(Running& running, CURLcode result) {
  HttpTransfer& transfer = *running.transfer;
  const char* peer = nullptr;
  long port = 0;
  curl_easy_getinfo(running.easy, CURLINFO_PRIMARY_IP, &peer);
  curl_easy_getinfo(running.easy, CURLINFO_PRIMARY_PORT, &port);
  transfer.peer_is_private =
      peer && *peer && is_private_address(peer) && !running.proxies.has(peer, port);
  if (running.stopped) return say(transfer, http_stopped, "");
  if (running.refused && result != CURLE_OK) return say(transfer, http_address_refused, "");
  if (result == CURLE_OK) return say(transfer, http_done, "");
  const bool untrusted = result == CURLE_PEER_FAILED_VERIFICATION;
  say(transfer, untrusted ? http_untrusted : http_failed, curl_easy_strerror(result));
}

using RunningList = std::vector<std::unique_ptr<Running>>;

void take_out_finished(CURLM* multi, RunningList& running) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    for (auto at = running.begin(); at != running.end(); ++at) {
      if ((*at)->easy != message->easy_handle) continue;
      finish(**at, result);
      curl_multi_remove_handle(multi, (*at)->easy);
      running.erase(at);
      break;
    }
  }
}

void run(void* opened, HttpTransfer* transfers, size_t count, size_t at_once,
         const HttpPulse* pulse) {
  const auto& session = *static_cast<const Session*>(opened);
  CURLM* const multi = session.multi;
  for (size_t i = 0; i < count; ++i) say(transfers[i], http_stopped, "");
  RunningList running;
  size_t next = 0;
  while (next < count || !running.empty()) {
    while (next < count && running.size() < at_once) {
      running.push_back(std::make_unique<Running>(transfers[next++], session.proxies));
      set_up(*running.back());
      curl_multi_add_handle(multi, running.back()->easy);
    }
    int active = 0;
    curl_multi_perform(multi, &active);
    take_out_finished(multi, running);
    if (!pulse->keep_going(pulse->context)) break;
    if (active > 0) curl_multi_poll(multi, nullptr, 0, kPulseMs, nullptr);
  }
  for (const auto& each : running) curl_multi_remove_handle(multi, each->easy);
}

void* open_session() {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  return new Session;
}

void close_session(void* opened) {
  auto* session = static_cast<Session*>(opened);
  curl_multi_cleanup(session->multi);
  delete session;
}

constexpr HttpModule kModule = {open_session, close_session, run};

}  // namespace

extern "C" __attribute__((visibility("default"))) const HttpModule* fp8kv_http_module(
    const char* version) {
  return std::strcmp(version, FP8KV_VERSION) == 0 ? &kModule : nullptr;
}

}  // namespace fp8kv
