#include "http/curl/proxy_addresses.h"

#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <curl/curl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string>

namespace fp8kv {
namespace {

// libcurl's default for a proxy without a port.
constexpr const char* kDefaultPort = "1080";

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  std::string out;
  if (curl_url_get(url, part, &text, 0) == CURLUE_OK && text) out = text;
  curl_free(text);
  return out;
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN + 8] = "";
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string(text) + " " + std::to_string(ntohs(v4.sin_port));
  }
  if (address->sa_family != AF_INET6) return "";
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return std::string(text) + " " + std::to_string(ntohs(v6.sin6_port));
}

void add_proxy(const char* proxy, std::vector<sockaddr_storage>& addresses) {
  CURLU* url = curl_url();
  const unsigned flags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME;
  if (curl_url_set(url, CURLUPART_URL, proxy, flags) == CURLUE_OK) {
    std::string host = part_of(url, CURLUPART_HOST), port = part_of(url, CURLUPART_PORT);
    if (host.starts_with('[')) host = host.substr(1, host.find(']') - 1);
    if (port.empty()) port = kDefaultPort;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0) {
      for (const addrinfo* at = found; at; at = at->ai_next) {
        sockaddr_storage address{};
        std::memcpy(&address, at->ai_addr, at->ai_addrlen);
        addresses.push_back(address);
      }
      freeaddrinfo(found);
    }
  }
  curl_url_cleanup(url);
}

}  // namespace

ProxyAddresses::ProxyAddresses() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* proxy = std::getenv(name);
    if (proxy && *proxy) add_proxy(proxy, addresses_);
  }
}

bool ProxyAddresses::has(const sockaddr* address) const {
  for (const sockaddr_storage& each : addresses_) {
    if (text_of(reinterpret_cast<const sockaddr*>(&each)) == text_of(address)) return true;
  }
  return false;
}

bool ProxyAddresses::has(const char* address, long port) const {
  const std::string text = std::string(address) + " " + std::to_string(port);
  for (const sockaddr_storage& each : addresses_) {
    if (text_of(reinterpret_cast<const sockaddr*>(&each)) == text) return true;
  }
  return false;
}

}  // namespace fp8kv
