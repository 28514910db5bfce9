// A running server that is asked for log probabilities. Sends the key to no other address, and
// stores it nowhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "attest/server_protocols.h"
#include "base/log.h"
#include "http/http_client.h"
#include "http/url.h"

namespace fp8kv {

struct ServerAccess {
  std::string api;      // a name from server_protocols(); "": detected
  std::string key;      // sent as a bearer token; "": none
  std::string model;    // the server's name for it; "": its first model
  int timeout_s = 600;  // longest wait without a byte of an answer
};

class AttestServer {
 public:
  // Takes `url` as given, with or without "/v1". Sends nothing yet. Throws a usage Error if it is
  // no address, and a device error if the HTTP module is missing.
  AttestServer(const std::string& url, ServerAccess access, Log& log);

  // Finds out the protocol and the model. If that fails, throws with what was found and the way
  // out.
  void connect();

  const ServerProtocol& protocol() const { return *protocol_; }
  const std::string& version() const { return version_; }  // "" if the server does not tell
  const std::string& model() const { return access_.model; }
  std::optional<int64_t> max_tokens() const { return max_tokens_; }  // of a prompt with its answer
  std::string address() const;
  uint64_t requests() const { return client_.requests(); }

  // Log probabilities of the tokens of `ids` after the first. Throws if the server read other
  // tokens.
  std::vector<double> prompt_log_probs(std::span<const int32_t> ids, const std::string& text);
  // The tokens that the server appends to `ids`.
  ServerAnswer generate(std::span<const int32_t> ids, const std::string& text, int64_t new_tokens);

 private:
  HttpReply send(const std::string& path, const std::optional<std::string>& post);
  std::optional<Json> probe(const std::string& path);
  void find_protocol();
  void find_model();
  ServerAnswer ask(ServerQuestion question);
  Json parsed(const HttpReply& reply, const std::string& path) const;
  std::string said(const HttpReply& reply) const;
  [[noreturn]] void refuse(const HttpReply& reply, const std::string& path);

  Url url_;
  ServerAccess access_;
  Log& log_;
  HttpClient client_;
  const ServerProtocol* protocol_ = nullptr;
  std::string version_;
  std::optional<int64_t> max_tokens_;
  uint64_t answered_ = 0;  // questions that were answered
};

}  // namespace fp8kv
