#include "http/private_address.h"

#include <arpa/inet.h>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <netinet/in.h>

namespace fp8kv {
namespace {

// Source: IANA's special-purpose registry: loopback, private, shared, link-local, benchmark,
// multicast and reserved addresses.
bool is_private_v4(uint32_t address) {
  struct Block {
    uint32_t network;
    int bits;
  };
  constexpr Block kBlocks[] = {
      {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
      {0xac100000, 12}, {0xc0000000, 24}, {0xc0a80000, 16}, {0xc6120000, 15}, {0xe0000000, 3}};
  for (const Block& block : kBlocks) {
    if ((address ^ block.network) >> (32 - block.bits) == 0) return true;
  }
  return false;
}

bool is_private_v6(const unsigned char* bytes) {
  // IPv4 addresses within IPv6: ::a.b.c.d (with :: and ::1), ::ffff:a.b.c.d, 64:ff9b::a.b.c.d.
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr unsigned char kPlain[12] = {};
  constexpr unsigned char kNat64[12] = {0, 0x64, 0xff, 0x9b};
  for (const unsigned char* prefix : {kMapped, kPlain, kNat64}) {
    if (std::memcmp(bytes, prefix, 12) != 0) continue;
    uint32_t address = 0;
    std::memcpy(&address, bytes + 12, sizeof address);
    return is_private_v4(ntohl(address));
  }
  // All publicly routed addresses begin with the bits 001.
  return (bytes[0] & 0xe0) != 0x20;
}

}  // namespace

bool is_private_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return is_private_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return true;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  return is_private_v6(v6.sin6_addr.s6_addr);
}

bool is_private_address(const char* text) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    return is_private_v4(ntohl(v4.sin_addr.s_addr));
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, text, &v6) != 1 || is_private_v6(v6.s6_addr);
}

}  // namespace fp8kv
