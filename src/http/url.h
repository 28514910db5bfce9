// Parses http and https URLs, as far as a client that follows redirects itself needs it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fp8kv {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; IPv6 in brackets
  std::string port;    // "" for the default port of the scheme
  std::string path;    // from the first slash on, with the query but no fragment

  std::string origin() const;  // "https://host:port"
  std::string text() const { return origin() + path; }
  bool operator==(const Url&) const = default;
};

// Returns nullopt for another scheme, a user name, a space or a control character.
std::optional<Url> parse_url(std::string_view text);

// The URL that a Location header means; `location` is absolute or relative to `base`.
std::optional<Url> redirected(const Url& base, std::string_view location);

// Whether the host itself is a private address or "localhost". Other names may still resolve to a
// private address.
bool is_private_name(const Url& url);

// `path` with %XX for every byte that a path may not contain. Slashes stay.
std::string escaped_path(std::string_view path);

}  // namespace fp8kv
