#include "http/http_client.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <string_view>

#include "base/error.h"
#include "files/module_file.h"

namespace fp8kv {
namespace {

constexpr size_t kAtOnce = 6;  // the number of connections that browsers make to a host
constexpr uint64_t kMostHeaderBytes = uint64_t(64) << 10;
constexpr uint64_t kMostErrorBytes = uint64_t(64) << 10;

// A reply that is still being received.
struct Receiving {
  HttpReply reply;
  uint64_t max_bytes = 0;
  bool keep_errors = false;
  uint64_t header_bytes = 0, body_bytes = 0;
};

bool has_content(const HttpReply& reply) {
  return reply.status == 200 || reply.status == 206;
}

uint64_t number_of(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() <= 18 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::stoull(text) : 0;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

int take_line(void* context, const char* bytes, size_t n_bytes) {
  auto& receiving = *static_cast<Receiving*>(context);
  const std::string_view line(bytes, n_bytes);
  receiving.header_bytes += n_bytes;
  if (receiving.header_bytes > kMostHeaderBytes) return 1;
  HttpReply& reply = receiving.reply;
  if (line.starts_with("HTTP/")) {  // a new status line also follows "100 Continue"
    reply.headers.clear();
    const size_t space = line.find(' ');
    reply.status = space == line.npos
                       ? 0
                       : static_cast<int>(number_of(std::string(line.substr(space + 1, 3))));
    return 0;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return 0;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  reply.headers[name] = trimmed(line.substr(colon + 1));
  return 0;
}

int take_bytes(void* context, const char* bytes, size_t n_bytes) {
  auto& receiving = *static_cast<Receiving*>(context);
  HttpReply& reply = receiving.reply;
  receiving.body_bytes += n_bytes;
  if (!has_content(reply)) {
    if (receiving.body_bytes > kMostErrorBytes) return 1;
    if (receiving.keep_errors) reply.body.append(bytes, n_bytes);
    return 0;
  }
  const bool told_longer = number_of(reply.header("content-length")) > receiving.max_bytes;
  if (told_longer || receiving.body_bytes > receiving.max_bytes) {
    reply.too_long = true;
    return 1;
  }
  reply.body.append(bytes, n_bytes);
  return 0;
}

struct Pulse {
  const std::function<void()>& call;
  std::exception_ptr thrown;
};

int go_on(void* context) {
  auto& pulse = *static_cast<Pulse*>(context);
  try {
    pulse.call();
    return 1;
  } catch (...) {
    pulse.thrown = std::current_exception();
    return 0;
  }
}

HttpReply received(Receiving& receiving, const HttpTransfer& transfer) {
  HttpReply reply = std::move(receiving.reply);
  reply.peer_is_private = transfer.peer_is_private != 0;
  reply.address_refused = transfer.outcome == http_address_refused;
  reply.untrusted = transfer.outcome == http_untrusted;
  const bool over_long_header = receiving.header_bytes > kMostHeaderBytes;
  if (transfer.outcome == http_failed) reply.failure = transfer.message;
  if (over_long_header) reply.failure = "its headers are longer than 64 KiB";
  return reply;
}

}  // namespace

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(const std::string& or_else) {
  std::string way_out = "install libcurl's headers (Debian: libcurl4-openssl-dev) and build again";
  if (!or_else.empty()) way_out += "; or " + or_else;
  void* entry = load_module("http", kHttpModuleEntry, way_out);
  module_ = reinterpret_cast<HttpModuleEntry>(entry)(FP8KV_VERSION);
  if (!module_) {
    throw Error("fp8kv_http.so is of another version than this program (" FP8KV_VERSION ")",
                "install both from one build", ErrorKind::device);
  }
  session_ = module_->open();
  if (!session_) throw Error("libcurl cannot begin", "", ErrorKind::resource);
}

HttpClient::~HttpClient() {
  module_->close(session_);
}

std::vector<HttpReply> HttpClient::run(std::span<const HttpRequest> requests,
                                       const std::function<void()>& pulse) {
  std::vector<Receiving> receiving(requests.size());
  std::vector<std::vector<const char*>> headers(requests.size());
  std::vector<HttpTransfer> transfers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    for (const std::string& line : requests[i].headers) headers[i].push_back(line.c_str());
    receiving[i].max_bytes = requests[i].max_bytes;
    receiving[i].keep_errors = requests[i].keep_errors;
    HttpTransfer& transfer = transfers[i];
    transfer = {};
    transfer.url = requests[i].url.c_str();
    if (const auto& post = requests[i].post) {
      transfer.body = post->data();
      transfer.body_bytes = post->size();
    }
    transfer.quiet_seconds = requests[i].quiet_seconds;
    transfer.headers = headers[i].data();
    transfer.n_headers = headers[i].size();
    transfer.public_only = requests[i].public_only;
    transfer.use_netrc = requests[i].use_netrc;
    transfer.context = &receiving[i];
    transfer.on_header = take_line;
    transfer.on_body = take_bytes;
  }
  Pulse state{pulse, nullptr};
  const HttpPulse c_pulse{&state, go_on};
  module_->run(session_, transfers.data(), transfers.size(), kAtOnce, &c_pulse);
  if (state.thrown) std::rethrow_exception(state.thrown);
  std::vector<HttpReply> replies;
  for (size_t i = 0; i < requests.size(); ++i) {
    bytes_ += receiving[i].body_bytes;
    replies.push_back(received(receiving[i], transfers[i]));
  }
  requests_ += requests.size();
  return replies;
}

}  // namespace fp8kv
