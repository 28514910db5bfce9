// Recognises addresses outside of the public internet: loopback, private, link-local and similar.
#pragma once

#include <sys/socket.h>

namespace fp8kv {

// True also for any family other than IPv4 and IPv6.
bool is_private_address(const sockaddr* address);

// Accepts text such as "10.0.0.1" or "::1". True for text that is not an address.
bool is_private_address(const char* text);

}  // namespace fp8kv
