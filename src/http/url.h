// http and https URLs, as far as a client that follows redirects by itself has to know them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fp8kv {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; IPv6 in brackets
  std::string port;    // "" where it is the scheme's own
  std::string path;    // from its first slash, with the query; no fragment

  std::string origin() const;  // "https://host:port"
  std::string text() const { return origin() + path; }
  bool operator==(const Url&) const = default;
};

// nullopt for another scheme, a user name, a space or a control character.
std::optional<Url> parse_url(std::string_view text);

// The URL that a Location header means, absolute or relative to `base`.
std::optional<Url> redirected(const Url& base, std::string_view location);

// A host that is a private address or "localhost" by its name alone. Other names may still resolve
// to one.
bool is_private_name(const Url& url);

// `path` with every byte as %XX that may not stand in a path. Slashes stay.
std::string escaped_path(std::string_view path);

}  // namespace fp8kv
