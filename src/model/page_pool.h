// Which pages of a cache are free, which are in use and by how many, and which hold tokens that
// another prompt may begin with. Knows nothing of the memory behind them.
//
// A full page of a prompt can be shared once it is published: it is then found by the tokens in it
// and all before it, compared one by one. Pages that nobody uses any more stay published until
// their place is needed; the one used least recently goes first.
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

  // Pages that take() can give: those that are free, and published ones that nobody uses.
  int64_t available() const { return static_cast<int64_t>(free_.size() + unused_.size()); }

  // A page for the caller alone. REQUIRES available().
  int32_t take();
  // One more user of a published page.
  void share(int32_t page);
  void release(int32_t page);

  // The longest chain of published pages that `tokens` begins with.
  std::vector<int32_t> find(std::span<const int32_t> tokens) const;

  // Makes the pages of a prompt findable, those that `pages` and `tokens` both have in full and
  // that are not already.
  void publish(std::span<const int32_t> tokens, std::span<const int32_t> pages);

  static uint64_t default_hash(uint64_t parent, std::span<const int32_t> tokens);

 private:
  // Serial numbers are never used twice, so a page never passes for the parent of what followed
  // something else that was in its place.
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
  std::list<int32_t> unused_;  // published and without users, the one used least recently first
  std::unordered_multimap<uint64_t, int32_t> index_;
  uint64_t last_serial_ = 0;
};

}  // namespace fp8kv
