#include "model/cache/page_pool.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {

uint64_t PagePool::default_hash(uint64_t parent, std::span<const int32_t> tokens) {
  uint64_t hash = parent;
  for (const int32_t token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

PagePool::PagePool(int64_t n_pages, int32_t page_size, Hash hash)
    : page_size_(static_cast<size_t>(page_size)),
      hash_(hash),
      pages_(static_cast<size_t>(n_pages)) {
  // Highest first, so that pages are handed out in rising order.
  for (auto page = static_cast<int32_t>(n_pages); page-- > 0;) free_.push_back(page);
}

int32_t PagePool::take() {
  FP8KV_ASSERT(available() > 0);
  if (free_.empty()) withdraw(unused_.front());
  const int32_t page = free_.back();
  free_.pop_back();
  pages_[static_cast<size_t>(page)].users = 1;
  return page;
}

void PagePool::share(int32_t page) {
  Page& shared = pages_[static_cast<size_t>(page)];
  FP8KV_ASSERT(shared.serial != 0);
  if (shared.users++ == 0) unused_.erase(shared.place);
}

void PagePool::release(int32_t page) {
  Page& released = pages_[static_cast<size_t>(page)];
  FP8KV_ASSERT(released.users > 0);
  if (--released.users > 0) return;
  if (released.serial != 0) {
    released.place = unused_.insert(unused_.end(), page);
  } else {
    free_.push_back(page);
  }
}

// Makes an unused page free.
void PagePool::withdraw(int32_t page) {
  Page& withdrawn = pages_[static_cast<size_t>(page)];
  unused_.erase(withdrawn.place);
  const auto [begin, end] = index_.equal_range(withdrawn.hash);
  index_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == page; }));
  withdrawn = Page{};
  free_.push_back(page);
}

std::optional<int32_t> PagePool::child(uint64_t parent, std::span<const int32_t> tokens) const {
  const auto [begin, end] = index_.equal_range(hash_(parent, tokens));
  for (auto entry = begin; entry != end; ++entry) {
    const Page& page = pages_[static_cast<size_t>(entry->second)];
    if (page.parent == parent && std::ranges::equal(page.tokens, tokens)) return entry->second;
  }
  return std::nullopt;
}

std::vector<int32_t> PagePool::find(std::span<const int32_t> tokens) const {
  std::vector<int32_t> found;
  uint64_t parent = 0;
  for (; tokens.size() >= page_size_; tokens = tokens.subspan(page_size_)) {
    const std::optional<int32_t> page = child(parent, tokens.first(page_size_));
    if (!page) break;
    found.push_back(*page);
    parent = pages_[static_cast<size_t>(*page)].serial;
  }
  return found;
}

void PagePool::publish(std::span<const int32_t> tokens, std::span<const int32_t> pages) {
  uint64_t parent = 0;
  for (const int32_t number : pages) {
    if (tokens.size() < page_size_) return;
    const std::span<const int32_t> own = tokens.first(page_size_);
    tokens = tokens.subspan(page_size_);
    const std::optional<int32_t> known = child(parent, own);
    if (known) {  // this page is published, or another one with the same tokens
      parent = pages_[static_cast<size_t>(*known)].serial;
      continue;
    }
    Page& page = pages_[static_cast<size_t>(number)];
    FP8KV_ASSERT(page.serial == 0 && page.users == 1);
    page.serial = ++last_serial_;
    page.parent = parent;
    page.hash = hash_(parent, own);
    page.tokens.assign(own.begin(), own.end());
    index_.emplace(page.hash, number);
    parent = page.serial;
  }
}

}  // namespace fp8kv
