#include "remote/remote_refusals.h"

#include "base/shell.h"

namespace fp8kv {
namespace {

constexpr const char* kLogIn =
    "log in with an account that may read it: hf auth login, or set HF_TOKEN";

std::string model_page(const Asked& asked) {
  return cat(asked.url.origin(), "/", asked.address.hub->repo);
}

Error hub_error(const Asked& asked, const HttpReply& reply) {
  const HubName& name = *asked.address.hub;
  const std::string code = reply.header("x-error-code");
  const std::string model = quote(asked.address.text());
  const std::string who = asked.with_token ? "the account of this token" : "without a token";
  if (code == "GatedRepo") {
    return Error(cat(model, ": is gated, and may not be read ",
                     asked.with_token ? "by the account of this token" : "without a token"),
                 cat("ask for access on ", model_page(asked), ", then: hf auth login"));
  }
  if (code == "RevisionNotFound") {
    return Error(cat(model, ": has no revision ", quote(name.revision)),
                 "name a branch, a tag or a whole commit of it");
  }
  if (code == "RepoNotFound" || reply.status == 401) {
    return Error(cat(model, ": the hub has no such model, or does not show it to ",
                     asked.with_token ? who : "those who send no token"),
                 cat("check the name; ", kLogIn));
  }
  if (reply.status == 403) {
    return Error(cat(model, ": may not be read ",
                     asked.with_token ? "by the account of this token" : "without a token"),
                 kLogIn);
  }
  return Error(cat(shown(asked), ": the hub has no such file"),
               "only models with config.json and safetensors files can be read from there");
}

}  // namespace

std::string shown(const Asked& asked) {
  return cat(quote(asked.address.text()), ": ", asked.file);
}

Error status_error(const Asked& asked, const HttpReply& reply) {
  const bool known = reply.status == 401 || reply.status == 403 || reply.status == 404;
  if (known && asked.address.hub) return hub_error(asked, reply);
  if (reply.status == 404 || reply.status == 410) {
    return Error(cat(shown(asked), ": there is no such file (HTTP ", reply.status, ")"),
                 "check the address: it is that of the folder that holds config.json");
  }
  if (known || reply.status == 407) {
    return Error(cat(shown(asked), ": may not be read (HTTP ", reply.status, ")"),
                 "credentials of a host are taken from ~/.netrc");
  }
  return Error(
      cat(shown(asked), ": HTTP ", reply.status, " from ", asked.url.host, ", expected the file"),
      "check the address", ErrorKind::resource);
}

Error unreachable_error(const Asked& asked, const HttpReply& reply, int tries) {
  const std::string tried = cat(" (tried ", count_of(static_cast<uint64_t>(tries), "time"), ")");
  if (!reply.failure.empty()) {
    return Error(
        cat(shown(asked), ": cannot be read from ", asked.url.host, ": ", reply.failure, tried),
        "check the network and the proxy (HTTPS_PROXY), then try again", ErrorKind::resource);
  }
  const std::string after = reply.header("retry-after");
  if (reply.status == 429) {
    return Error(cat(shown(asked), ": ", asked.url.host,
                     " takes no more requests for now (HTTP 429)", tried),
                 after.empty() ? "wait some minutes, then try again"
                               : cat("wait as long as it says (Retry-After: ", plain(after),
                                     "), then try again"),
                 ErrorKind::resource);
  }
  return Error(cat(shown(asked), ": ", asked.url.host, " has a fault of its own (HTTP ",
                   reply.status, ")", tried),
               "try again later", ErrorKind::resource);
}

Error untrusted_error(const Asked& asked) {
  return Error(cat(shown(asked), ": the certificate of ", asked.url.host, " is not trusted"),
               "name the file of its authority's certificate in CURL_CA_BUNDLE or SSL_CERT_FILE",
               ErrorKind::resource);
}

Error redirect_error(const Asked& asked, const std::string& why) {
  return Error(cat(shown(asked), ": ", asked.url.host, " redirects ", why), "check the address");
}

Error ranges_ignored_error(const Asked& asked) {
  return Error(cat(shown(asked), ": ", asked.url.host,
                   " sends whole files where a part is asked for (it ignores ranges)"),
               "fetch the model, then name its folder; or use a server that knows ranges");
}

Error changed_error(const Asked& asked, const std::string& how) {
  return Error(cat(shown(asked), ": changed while it was read: ", how), "try again");
}

}  // namespace fp8kv
