// Addresses of models that are not on this machine: "hf://org/name@revision" and
// "https://host/folder". Opens no connection.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/hub_models.h"
#include "http/url.h"

namespace fp8kv {

struct RemoteAddress {
  std::optional<HubName> hub;  // absent: a folder
  Url folder;                  // of that folder, with a slash at its end

  // The spelling of the command line.
  std::string text() const;
};

// Whether a path that was given is an address: it begins with "hf://", "https://" or "http://".
bool is_remote(const std::filesystem::path& given);

// Throws a usage Error for an address that names no model. http:// is for this machine alone.
RemoteAddress parse_remote_address(const std::filesystem::path& given);

}  // namespace fp8kv
