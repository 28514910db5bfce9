#include "remote/remote_address.h"

#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr std::string_view kHub = "hf://";

RemoteAddress hub_address(const std::string& text) {
  const auto name = hub_name(std::string_view(text).substr(kHub.size()));
  if (name) return {name, {}};
  throw Error(cat(quote(text), ": names no model of the hub"),
              "write hf://OWNER/NAME or hf://OWNER/NAME@REVISION", ErrorKind::usage);
}

}  // namespace

std::string RemoteAddress::text() const {
  if (!hub) return folder.text();
  return cat(kHub, hub->repo, hub->revision == "main" ? "" : cat("@", hub->revision));
}

bool is_remote(const std::filesystem::path& given) {
  const std::string& text = given.native();
  return text.starts_with(kHub) || text.starts_with("https://") || text.starts_with("http://");
}

RemoteAddress parse_remote_address(const std::filesystem::path& given) {
  const std::string& text = given.native();
  if (text.starts_with(kHub)) return hub_address(text);
  std::optional<Url> url = parse_url(text);
  if (!url || url->path.find('?') != std::string::npos) {
    // The message does not repeat the address, which may contain a user name or a key.
    throw Error(
        "this address of a folder has a user name, a query or a character that cannot be "
        "in it",
        "write https://HOST/FOLDER; credentials are taken from ~/.netrc", ErrorKind::usage);
  }
  if (url->scheme == "http" && !is_private_name(*url)) {
    throw Error(cat(quote(text),
                    ": http:// is accepted for addresses of this machine or a private "
                    "network alone"),
                "write https://", ErrorKind::usage);
  }
  if (!url->path.ends_with('/')) url->path += '/';
  return {std::nullopt, *url};
}

}  // namespace fp8kv
