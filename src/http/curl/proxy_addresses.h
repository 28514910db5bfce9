// The addresses of the proxies that the environment names, so that a connection to one is not taken
// for one to the host of a URL.
#pragma once

#include <sys/socket.h>
#include <vector>

namespace fp8kv {

class ProxyAddresses {
 public:
  // Resolves the hosts of http_proxy, HTTPS_PROXY and ALL_PROXY, which libcurl reads.
  ProxyAddresses();

  // True for this address and port.
  bool has(const sockaddr* address) const;
  bool has(const char* address, long port) const;

 private:
  std::vector<sockaddr_storage> addresses_;
};

}  // namespace fp8kv
