// Tracks the pages of a cache: free ones, users of those in use, and pages with tokens that another
// prompt may begin with. It knows nothing of the memory behind them.
//
// A full page of a prompt can be shared once it is published. It is found by its tokens and all
// tokens before it, compared one by one. Pages without users stay published until their place is
// needed; the least recently used one goes first.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace fp8kv {

class PagePool {
 public:
  using Hash = uint64_t (*)(uint64_t parent, std::span<const int32_t> tokens);

  // `page_size` tokens in a page.
  PagePool(int64_t n_pages, int32_t page_size, Hash hash = default_hash);

  // Pages that take() can give: free ones, and published ones without users.
  int64_t available() const { return static_cast<int64_t>(free_.size() + unused_.size()); }

  // A page for the caller alone. REQUIRES available().
  int32_t take();
  // Adds a user to a published page.
  void share(int32_t page);
  void release(int32_t page);

  // The longest chain of published pages with which `tokens` begins.
  std::vector<int32_t> find(std::span<const int32_t> tokens) const;

  // Makes a prompt's pages findable: those that are full in both `pages` and `tokens`, and not
  // published yet.
  void publish(std::span<const int32_t> tokens, std::span<const int32_t> pages);

  static uint64_t default_hash(uint64_t parent, std::span<const int32_t> tokens);

 private:
  // Serial numbers are never used twice. So a page is never taken for the parent of pages that
  // followed its earlier contents.
  struct Page {
    int32_t users = 0;
    uint64_t serial = 0;  // 0: not published
    uint64_t parent = 0;  // serial of the page before; 0: the first
    uint64_t hash = 0;
    std::vector<int32_t> tokens;
    std::list<int32_t>::iterator place;  // in unused_, while nobody uses it
  };

  std::optional<int32_t> child(uint64_t parent, std::span<const int32_t> tokens) const;
  void withdraw(int32_t page);

  size_t page_size_;
  Hash hash_;
  std::vector<Page> pages_;
  std::vector<int32_t> free_;
  std::list<int32_t> unused_;  // published pages without users, least recently used first
  std::unordered_multimap<uint64_t, int32_t> index_;
  uint64_t last_serial_ = 0;
};

}  // namespace fp8kv
