// The addresses of the proxies named in the environment. A connection to a proxy must not be taken
// for one to the URL's host.
#pragma once

#include <sys/socket.h>
#include <vector>

namespace fp8kv {

class ProxyAddresses {
 public:
  // Resolves the hosts of http_proxy, HTTPS_PROXY and ALL_PROXY, the variables that libcurl reads.
  ProxyAddresses();

  // Whether a proxy has this address and port.
  bool has(const sockaddr* address) const;
  bool has(const char* address, long port) const;

 private:
  std::vector<sockaddr_storage> addresses_;
};

}  // namespace fp8kv
