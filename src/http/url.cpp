#include "http/url.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/text.h"
#include "http/private_address.h"

namespace fp8kv {
namespace {

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '\\'; });
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string Url::origin() const {
  return cat(scheme, "://", host, port.empty() ? "" : ":", port);
}

std::optional<Url> parse_url(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const size_t colon = text.find("://");
  if (colon == text.npos || !is_plain(text)) return std::nullopt;
  Url url;
  for (const char c : text.substr(0, colon)) {
    url.scheme += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  text.remove_prefix(colon + 3);
  const size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, end);
  url.path = cat(end < text.size() && text[end] == '/' ? "" : "/", text.substr(end));
  if (authority.find('@') != authority.npos) return std::nullopt;
  const size_t bracket = authority.find(']');
  const size_t port = authority.find(':', bracket == authority.npos ? 0 : bracket);
  if (port != authority.npos) {
    url.port = authority.substr(port + 1);
    if (!is_port(url.port)) return std::nullopt;
    authority = authority.substr(0, port);
  }
  if (authority.empty()) return std::nullopt;
  for (const char c : authority) {
    url.host += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (url.port == (url.scheme == "http" ? "80" : "443")) url.port.clear();
  return url;
}

std::optional<Url> redirected(const Url& base, std::string_view location) {
  if (location.empty()) return std::nullopt;
  if (location.starts_with("//")) return parse_url(cat(base.scheme, ":", location));
  if (location.find("://") < location.find_first_of("/?")) return parse_url(location);
  if (location.starts_with('/')) return parse_url(cat(base.origin(), location));
  const std::string_view path = std::string_view(base.path).substr(0, base.path.find('?'));
  return parse_url(cat(base.origin(), path.substr(0, path.rfind('/') + 1), location));
}

bool is_private_name(const Url& url) {
  std::string host = url.host;
  if (host.ends_with('.')) host.pop_back();
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  if (host.starts_with('[')) return is_private_address(host.substr(1, host.find(']') - 1).c_str());
  // A last part that starts with a digit means an IPv4 address, in any notation.
  const size_t last = host.rfind('.') == host.npos ? 0 : host.rfind('.') + 1;
  const bool is_number = last < host.size() && std::isdigit(static_cast<unsigned char>(host[last]));
  return is_number && is_private_address(host.c_str());
}

std::string escaped_path(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace fp8kv
