// Errors for answers of a server that are not the file. They contain no token and no signed URL.
#pragma once

#include <string>

#include "base/error.h"
#include "http/http_client.h"
#include "remote/remote_address.h"

namespace fp8kv {

// The origin of an answer, for messages.
struct Asked {
  const RemoteAddress& address;
  const std::string& file;
  const Url& url;
  bool with_token = false;  // the request had the hub's token
};

// "'hf://org/name': config.json".
std::string shown(const Asked& asked);

// For a status that is no content and no redirect, and that retrying does not help.
Error status_error(const Asked& asked, const HttpReply& reply);
// For the last of several failed tries.
Error unreachable_error(const Asked& asked, const HttpReply& reply, int tries);
// For a host whose certificate is not trusted.
Error untrusted_error(const Asked& asked);
// For a redirect that is not followed.
Error redirect_error(const Asked& asked, const std::string& why);
// For a server that sends a whole file when a part was requested.
Error ranges_ignored_error(const Asked& asked);
// For a file whose parts are of different versions.
Error changed_error(const Asked& asked, const std::string& how);

}  // namespace fp8kv
