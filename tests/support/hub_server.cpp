#include "support/hub_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <charconv>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "files/file.h"

namespace fp8kv::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStorage = "/storage/";

std::string etag_of(const std::string& name) {
  Sha256 digest;
  digest.add(name);
  return cat("\"", digest.hex(), "\"");
}

// Tells versions of a file apart by its size.
std::string etag_of_file(const fs::path& path) {
  return etag_of(cat(path.string(), " ", fs::file_size(path)));
}

// The head of the next request, or "" if the client has finished.
std::string read_head(int connection, std::string& buffer) {
  char block[4096];
  for (;;) {
    if (const size_t end = buffer.find("\r\n\r\n"); end != buffer.npos) {
      std::string head = buffer.substr(0, end + 2);
      buffer.erase(0, end + 4);
      return head;
    }
    const ssize_t got = ::recv(connection, block, sizeof block, 0);
    if (got <= 0) return "";
    buffer.append(block, static_cast<size_t>(got));
  }
}

std::string header_of(std::string_view head, std::string_view name) {
  const std::string mark = cat("\r\n", name, ": ");
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  const auto at = std::search(head.begin(), head.end(), mark.begin(), mark.end(), same);
  if (at == head.end()) return "";
  const std::string_view rest = head.substr(static_cast<size_t>(at - head.begin()) + mark.size());
  return std::string(rest.substr(0, rest.find("\r\n")));
}

// The body of `n_bytes` after a head.
std::string read_body(int connection, std::string& buffer, size_t n_bytes) {
  char block[4096];
  while (buffer.size() < n_bytes) {
    const ssize_t got = ::recv(connection, block, sizeof block, 0);
    if (got <= 0) return "";
    buffer.append(block, static_cast<size_t>(got));
  }
  std::string body = buffer.substr(0, n_bytes);
  buffer.erase(0, n_bytes);
  return body;
}

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

std::string answer_head(const HubAnswer& answer) {
  std::string head = cat("HTTP/1.1 ", answer.status, " Status\r\n");
  for (const auto& [name, value] : answer.headers) head += cat(name, ": ", value, "\r\n");
  return cat(head, "Content-Length: ", answer.body.size(), "\r\n\r\n");
}

}  // namespace

HubServer::HubServer(fs::path root, InPlace in_place)
    : root_(std::move(root)), in_place_(std::move(in_place)) {
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool listens = listening_ >= 0 && ::bind(listening_, plain, size) == 0 &&
                       ::listen(listening_, 64) == 0 &&
                       ::getsockname(listening_, plain, &size) == 0;
  if (!listens) fail("the test's server cannot listen on 127.0.0.1");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HubServer::~HubServer() {
  ::shutdown(listening_, SHUT_RDWR);
  acceptor_.join();
  for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
  for (std::thread& server : servers_) server.join();
  for (const int connection : connections_) ::close(connection);
  ::close(listening_);
}

std::string HubServer::endpoint() const {
  return cat("http://127.0.0.1:", port_);
}

std::string HubServer::storage() const {
  return cat("http://localhost:", port_);
}

std::vector<HubAsk> HubServer::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void HubServer::accept_all() {
  for (;;) {
    const int connection = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    servers_.emplace_back([this, connection] { serve(connection); });
  }
}

void HubServer::serve(int connection) {
  std::string buffer;
  for (;;) {
    const std::string head = read_head(connection, buffer);
    if (head.empty()) return;
    const std::string line = head.substr(0, head.find("\r\n"));
    const size_t target = line.find(' ') + 1;
    HubAsk ask{line.substr(target, line.rfind(' ') - target), header_of(head, "Host"),
               header_of(head, "Range"), header_of(head, "Authorization"), ""};
    ask.if_none_match = header_of(head, "If-None-Match");
    ask.if_range = header_of(head, "If-Range");
    const std::string length = header_of(head, "Content-Length");
    if (!length.empty()) ask.body = read_body(connection, buffer, std::stoul(length));
    {
      const std::lock_guard lock(mutex_);
      ask.nth = asked_.size();
      asked_.push_back(ask);
    }
    std::optional<HubAnswer> given = in_place_ ? in_place_(ask) : std::nullopt;
    const HubAnswer answer = given ? *given : this->answer(ask);
    const size_t sent = std::min(answer.cut_after.value_or(answer.body.size()), answer.body.size());
    body_bytes_ += sent;
    send_all(connection, answer_head(answer) + answer.body.substr(0, sent));
    if (answer.cut_after) {
      ::shutdown(connection, SHUT_RDWR);
      return;
    }
  }
}

HubAnswer HubServer::answer(const HubAsk& ask) const {
  std::string_view target = ask.target;
  if (target.starts_with(kStorage)) {
    return file_answer(root_ / target.substr(kStorage.size()), ask);
  }
  const size_t resolve = target.find("/resolve/");
  if (resolve == target.npos) return file_answer(root_ / target.substr(1), ask);
  const std::string_view rest = target.substr(resolve + 9);
  const std::string name = cat(target.substr(1, resolve - 1), "/", rest.substr(rest.find('/') + 1));
  const fs::path path = root_ / name;
  if (path.extension() != ".safetensors" || !fs::exists(path)) {
    HubAnswer answer = file_answer(path, ask);
    answer.headers["X-Repo-Commit"] = kHubCommit;
    return answer;
  }
  return {302,
          {{"X-Repo-Commit", kHubCommit},
           {"X-Linked-ETag", etag_of(name)},
           {"Location", cat(storage(), kStorage, name)}}};
}

HubAnswer HubServer::file_answer(const fs::path& path, const HubAsk& ask) const {
  if (!fs::is_regular_file(path)) return {404, {{"X-Error-Code", "EntryNotFound"}}};
  const InputFile file(path);
  const std::string etag = etag_of_file(path);
  HubAnswer answer{200, {{"ETag", etag}}};
  if (ask.if_none_match == etag) return {304, answer.headers};
  if (ask.range.empty() || (!ask.if_range.empty() && ask.if_range != etag)) {
    answer.body = file.read(0, file.size());
    return answer;
  }
  uint64_t begin = 0, last = 0;
  const char* end = ask.range.data() + ask.range.size();
  const char* dash = std::from_chars(ask.range.data() + 6, end, begin).ptr;
  std::from_chars(dash + 1, end, last);
  last = std::min(last, file.size() - 1);
  answer.status = 206;
  answer.headers["Content-Range"] = cat("bytes ", begin, "-", last, "/", file.size());
  answer.body = file.read(begin, last + 1 - begin);
  return answer;
}

}  // namespace fp8kv::test
