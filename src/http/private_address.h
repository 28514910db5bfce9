// Which addresses are not of the public internet: loopback, private, link-local and the like.
#pragma once

#include <sys/socket.h>

namespace fp8kv {

// True for a family that is neither IPv4 nor IPv6.
bool is_private_address(const sockaddr* address);

// Takes an address such as "10.0.0.1" or "::1". True for any other text.
bool is_private_address(const char* text);

}  // namespace fp8kv
