// Parses addresses of models on other machines: "hf://org/name@revision" and "https://host/folder".
// Opens no connection.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/hub_models.h"
#include "http/url.h"

namespace fp8kv {

struct RemoteAddress {
  std::optional<HubName> hub;  // nullopt for a folder
  Url folder;                  // the URL of that folder, with a slash at its end

  // The address as spelled on the command line.
  std::string text() const;
};

// Whether a path is an address: it begins with "hf://", "https://" or "http://".
bool is_remote(const std::filesystem::path& given);

// Throws a usage Error if the address names no model. http:// is allowed for private hosts alone.
RemoteAddress parse_remote_address(const std::filesystem::path& given);

}  // namespace fp8kv
