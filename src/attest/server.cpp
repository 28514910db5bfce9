#include "attest/server.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMostAnswerBytes = uint64_t(64) << 20;
constexpr int kMostTries = 5;
constexpr int64_t kLongestWaitSeconds = 60;
constexpr auto kNap = std::chrono::milliseconds(20);

Url server_url(const std::string& text) {
  std::optional<Url> url = parse_url(text.find("://") == text.npos ? "http://" + text : text);
  if (!url || url->path.find('?') != std::string::npos) {
    throw Error(cat(quote(text), ": is no address of a server"),
                "expected http://HOST:PORT or https://HOST", ErrorKind::usage);
  }
  const auto drop = [&](std::string_view end) {
    if (!url->path.ends_with(end)) return;
    url->path.erase(url->path.size() - end.size());
  };
  drop("/");
  drop("/v1");
  return *url;
}

bool is_busy(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

int64_t seconds_to_wait(const HttpReply& reply, int tries) {
  const std::string after = reply.header("retry-after");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), seconds);
  if (error == std::errc() && end == after.data() + after.size() && seconds >= 0) return seconds;
  return int64_t{1} << (tries - 1);
}

void wait(int64_t seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < until) {
    check_interrupt();
    std::this_thread::sleep_for(kNap);
  }
}

const ServerProtocol& protocol_at(const std::string& name) {
  for (const ServerProtocol& each : server_protocols()) {
    if (each.name == name) return each;
  }
  throw Error(cat("--api ", quote(name), ": is not known"), "expected vllm, sglang or tgi",
              ErrorKind::usage);
}

// Runtimes put their error message under one of these keys.
std::string message_in(const Json& body) {
  if (!body.is_object()) return "";
  for (const char* key : {"error", "message", "detail"}) {
    const std::optional<Json> found = body.find(key);
    if (!found) continue;
    if (found->is_string()) return found->as_string();
    if (found->is_object()) return found->get_string("message", "");
    return found->brief();
  }
  return "";
}

}  // namespace

AttestServer::AttestServer(const std::string& url, ServerAccess access, Log& log)
    : url_(server_url(url)), access_(std::move(access)), log_(log) {
  if (!access_.api.empty()) protocol_ = &protocol_at(access_.api);
}

std::string AttestServer::address() const {
  return url_.text();
}

void AttestServer::connect() {
  find_protocol();
  find_model();
}

// The server's own message, with the access key removed.
std::string AttestServer::said(const HttpReply& reply) const {
  std::string text;
  try {
    text = message_in(Json::parse(reply.body, "answer", JsonNumbers::python));
  } catch (const Error&) {
    text = reply.body;
  }
  if (!access_.key.empty()) {
    for (size_t at = 0; (at = text.find(access_.key, at)) != text.npos;) {
      text.replace(at, access_.key.size(), "***");
    }
  }
  return text.empty() ? "" : cat(": ", quote(text));
}

void AttestServer::refuse(const HttpReply& reply, const std::string& path) {
  const std::string where = cat(quote(address()), ": ", path);
  const std::string found = cat(where, ": HTTP ", reply.status, said(reply));
  if (reply.status == 401 || reply.status == 403) {
    throw Error(found, access_.key.empty()
                           ? "name the environment variable that holds the key: --api-key-env NAME"
                           : "the key of --api-key-env is not accepted there");
  }
  if (reply.status >= 300 && reply.status < 400) {
    const auto next = redirected(url_, reply.header("location"));
    throw Error(cat(where, ": redirects to ", next ? quote(next->origin()) : "what is no address",
                    ", which is not followed"),
                "name that address, if it is the server's");
  }
  if (reply.status == 404 || reply.status == 405) {
    throw Error(found, protocol_ ? cat("a server that only chats gives no log probabilities of "
                                       "prompts: ask ",
                                       protocol_->runtime, " itself, not a proxy")
                                 : "check the address");
  }
  if (reply.status == 400 || reply.status == 422) {
    throw Error(found, cat("try a shorter --seq-len; ", protocol_ ? protocol_->prompt_help : ""));
  }
  throw Error(found, "see the server's log", ErrorKind::resource);
}

// Sends one request, and retries until the server itself answers.
HttpReply AttestServer::send(const std::string& path, const std::optional<std::string>& post) {
  HttpRequest request;
  request.url = url_.text() + path;
  request.max_bytes = kMostAnswerBytes;
  request.keep_errors = true;
  request.quiet_seconds = access_.timeout_s;
  request.post = post;
  if (post) request.headers = {"Content-Type: application/json", "Expect:"};
  if (!access_.key.empty()) request.headers.push_back("Authorization: Bearer " + access_.key);
  const std::string where = cat(quote(address()), ": ", path);
  for (int tries = 1;; ++tries) {
    HttpReply reply = std::move(client_.run({&request, 1}, [] { check_interrupt(); })[0]);
    if (reply.untrusted) {
      throw Error(cat(where, ": the certificate is of no authority that is known here"),
                  "name the authority's file in SSL_CERT_FILE");
    }
    if (reply.too_long) {
      throw Error(cat(where, ": the answer is longer than ", human_bytes(kMostAnswerBytes)),
                  "use a shorter --seq-len");
    }
    if (!reply.failure.empty()) {
      const std::string so_far =
          answered_ == 0 ? "" : cat(" after ", count_of(answered_, "answer"));
      throw Error(cat(where, ": ", reply.failure, so_far),
                  answered_ == 0 ? "check that the server runs, and its address"
                                 : "see the server's log: it may have ended, or --timeout is short",
                  ErrorKind::resource);
    }
    if (!is_busy(reply.status)) return reply;
    const int64_t seconds = seconds_to_wait(reply, tries);
    if (tries >= kMostTries || seconds > kLongestWaitSeconds) {
      throw Error(cat(where, ": HTTP ", reply.status, said(reply), " (tried ", tries, " times)"),
                  seconds > kLongestWaitSeconds ? cat("it asks to wait ", seconds, " s: try later")
                                                : "the server is busy: try later",
                  ErrorKind::resource);
    }
    log_.detail(cat(where, ": HTTP ", reply.status, "; trying again in ", seconds, " s"));
    wait(seconds);
  }
}

// The JSON answer of `path`; nullopt if the server has no such path.
std::optional<Json> AttestServer::probe(const std::string& path) {
  const HttpReply reply = send(path, std::nullopt);
  if (reply.status == 401 || reply.status == 403) refuse(reply, path);
  if (reply.status != 200) return std::nullopt;
  try {
    return Json::parse(reply.body, path, JsonNumbers::python);
  } catch (const Error&) {
    return std::nullopt;  // for example a web page
  }
}

void AttestServer::find_protocol() {
  const bool given = protocol_ != nullptr;
  for (const ServerProtocol& each : server_protocols()) {
    if (given && protocol_ != &each) continue;
    const std::optional<Json> answer = probe(each.probe);
    if (!answer || !each.is_one(*answer)) continue;
    protocol_ = &each;
    const auto version = each.version_key.empty() ? std::nullopt : answer->find(each.version_key);
    if (version && version->is_string()) version_ = version->as_string();
    return;
  }
  if (given) return;
  const bool openai = probe("/v1/models").has_value();
  throw Error(cat(quote(address()), ": is not known as vLLM, SGLang or TGI",
                  openai ? ", though it has /v1/models" : ""),
              "name what it speaks: --api vllm, sglang or tgi");
}

void AttestServer::find_model() {
  const std::optional<Json> models = probe("/v1/models");
  const std::optional<Json> list = models ? models->find("data") : std::nullopt;
  std::vector<std::string> names;
  for (size_t i = 0; list && i < list->size(); ++i) {
    const std::string name = (*list)[i].get_string("id", "");
    names.push_back(name);
    if (!access_.model.empty() && access_.model != name) continue;
    access_.model = name;
    const int64_t most = (*list)[i].get_int("max_model_len", 0);
    if (most > 0) max_tokens_ = most;
    return;
  }
  if (!access_.model.empty() && names.empty()) return;
  if (protocol_->name != "vllm") return;
  if (names.empty()) {
    throw Error(cat(quote(address()), ": /v1/models names no model"),
                "name it: --served-model-name NAME");
  }
  throw Error(cat(quote(address()), ": has no model ", quote(access_.model),
                  did_you_mean(access_.model, names)),
              cat("it has ", join(names)));
}

ServerAnswer AttestServer::ask(ServerQuestion question) {
  question.model = access_.model;
  const HttpReply reply = send(protocol_->path, protocol_->question(question));
  if (reply.status != 200) refuse(reply, protocol_->path);
  const std::string where = cat(quote(address()), ": ", protocol_->path);
  Json json = [&] {
    try {
      return Json::parse(reply.body, "answer", JsonNumbers::python);
    } catch (const Error& error) {
      throw Error(cat(where, ": the answer is not JSON: ", error.what()),
                  "check that the address is the server's own");
    }
  }();
  ServerAnswer answer;
  try {
    answer = protocol_->answer(json, question);
  } catch (const Error& error) {
    throw Error(cat(where, ": ", error.what()), protocol_->prompt_help);
  }
  for (const double each : answer.log_probs) {
    if (std::isfinite(each) && each <= 1e-3) continue;
    throw Error(cat(where, ": gives ", each, " as a log probability, expected a number below 0"),
                "the server computes nonsense: see its log");
  }
  ++answered_;
  return answer;
}

std::vector<double> AttestServer::prompt_log_probs(std::span<const int32_t> ids,
                                                   const std::string& text) {
  ServerAnswer answer = ask({.model = {}, .ids = ids, .text = text});
  if (!std::equal(ids.begin(), ids.end(), answer.ids.begin(), answer.ids.end())) {
    const auto [own, its] =
        std::mismatch(ids.begin(), ids.end(), answer.ids.begin(), answer.ids.end());
    const auto name = [](auto at, auto end) { return at == end ? "none" : cat(*at); };
    throw Error(cat(quote(address()), ": token ", own - ids.begin(), " of the prompt is ",
                    name(its, answer.ids.end()), " there, expected ", name(own, ids.end()), " (",
                    answer.ids.size(), " tokens of ", ids.size(), ")"),
                "serve MODEL with its own tokenizer, and without a limit on prompts");
  }
  if (answer.log_probs.size() + 1 != ids.size()) {
    fail(quote(address()), ": gives ", answer.log_probs.size(), " log probabilities, expected ",
         ids.size() - 1);
  }
  return answer.log_probs;
}

ServerAnswer AttestServer::generate(std::span<const int32_t> ids, const std::string& text,
                                    int64_t new_tokens) {
  ServerAnswer answer = ask({.model = {}, .ids = ids, .text = text, .new_tokens = new_tokens});
  if (answer.ids.empty() || answer.ids.size() != answer.log_probs.size()) {
    fail(quote(address()), ": gives ", answer.log_probs.size(), " log probabilities for ",
         count_of(answer.ids.size(), "new token"));
  }
  return answer;
}

}  // namespace fp8kv
