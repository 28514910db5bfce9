// Errors for what a server answered instead of a file. No token and no signed URL is in them.
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
  bool with_token = false;  // of the hub
};

// "'hf://org/name': config.json".
std::string shown(const Asked& asked);

// For a status that is neither content, nor a redirect, nor worth another try.
Error status_error(const Asked& asked, const HttpReply& reply);
// For the last of several tries.
Error unreachable_error(const Asked& asked, const HttpReply& reply, int tries);
// For a host whose certificate is not trusted.
Error untrusted_error(const Asked& asked);
// For a redirect that is not followed.
Error redirect_error(const Asked& asked, const std::string& why);
// For a server that sends a whole file where a part was asked for.
Error ranges_ignored_error(const Asked& asked);
// For a file of which two parts are not of one version.
Error changed_error(const Asked& asked, const std::string& how);

}  // namespace fp8kv
