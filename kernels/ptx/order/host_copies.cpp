#include "kernels/ptx/order/host_copies.h"

#include <cstring>
#include <functional>
#include <string_view>

#include "base/text.h"

namespace fp8kv::ptx {
namespace {

constexpr int kNonsense = 0xCD;

size_t digest_of(const std::byte* memory, size_t bytes) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(memory), bytes});
}

}  // namespace

void HostCopies::add_pinned(const void* memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  pinned_[static_cast<const std::byte*>(memory)] = bytes;
}

bool HostCopies::is_pinned(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  const auto after = pinned_.upper_bound(at);
  if (after == pinned_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return at < begin + bytes;
}

std::string HostCopies::release_pinned(const void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = pinned_.find(static_cast<const std::byte*>(memory));
  if (found == pinned_.end()) return memory == nullptr ? "" : "was never allocated";
  const auto [begin, bytes] = *found;
  pinned_.erase(found);
  for (const Pending& copy : pending_) {
    if (copy.host < begin || copy.host >= begin + bytes) continue;
    const std::string wrong = cat("is given back while a copy of ", copy.bytes,
                                  " bytes may still use it: nothing waited for the copy");
    pending_.clear();
    return wrong;
  }
  return "";
}

std::string HostCopies::end(const Pending& copy) {
  if (!copy.data.empty()) {
    std::memcpy(copy.host, copy.data.data(), copy.bytes);
  } else if (digest_of(copy.host, copy.bytes) != copy.digest) {
    return cat("the host changed a source of ", copy.bytes,
               " bytes before it waited for their copy");
  }
  return "";
}

std::string HostCopies::end_before(const std::byte* host, size_t bytes, const WorkTime& time) {
  std::string wrong;
  for (auto copy = pending_.begin(); copy != pending_.end() && wrong.empty();) {
    if (copy->host >= host + bytes || host >= copy->host + copy->bytes) {
      ++copy;
      continue;
    }
    wrong = time.comes_after(copy->time.stream, copy->time.number())
                ? end(*copy)
                : cat("a copy uses pinned memory that another copy of ", copy->bytes,
                      " bytes uses, without waiting for it");
    copy = pending_.erase(copy);
  }
  return wrong;
}

std::string HostCopies::note_source(const void* from, size_t bytes, const WorkTime& time) {
  const std::lock_guard lock(mutex_);
  if (!is_pinned(from)) return "";
  auto* host = static_cast<std::byte*>(const_cast<void*>(from));
  const std::string wrong = end_before(host, bytes, time);
  pending_.push_back({host, bytes, time, digest_of(host, bytes), {}});
  return wrong;
}

std::string HostCopies::deliver(void* to, const void* from, size_t bytes, const WorkTime& time) {
  const std::lock_guard lock(mutex_);
  auto* host = static_cast<std::byte*>(to);
  if (!is_pinned(to)) {
    std::memcpy(host, from, bytes);
    return "";
  }
  const std::string wrong = end_before(host, bytes, time);
  const auto* data = static_cast<const std::byte*>(from);
  pending_.push_back({host, bytes, time, 0, {data, data + bytes}});
  std::memset(host, kNonsense, bytes);
  return wrong;
}

std::string HostCopies::arrive(const Clock& host) {
  const std::lock_guard lock(mutex_);
  std::string wrong;
  for (auto copy = pending_.begin(); copy != pending_.end();) {
    if (host.of(copy->time.stream) < copy->time.number()) {
      ++copy;
      continue;
    }
    if (const std::string found = end(*copy); wrong.empty()) wrong = found;
    copy = pending_.erase(copy);
  }
  return wrong;
}

}  // namespace fp8kv::ptx
