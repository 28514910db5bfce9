// Tokens and their ids, one to one. Ids may have gaps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace fp8kv {

class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;

  Vocabulary() = default;
  // From {"token": id, ...}. Throws for ids that are negative, given twice, or far beyond the
  // number of tokens (what is allocated must be bounded by the file).
  explicit Vocabulary(const Json& tokens);

  // For `count` tokens to be appended, whose bytes are below 4 GiB together.
  explicit Vocabulary(size_t count);
  // The token gets the next id, end_id(); false when it is there already. REQUIRES that no more
  // than `count` are appended.
  bool append(std::string_view token);
  void skip(size_t ids);  // the next ids are those of no token

  int32_t find(std::string_view token) const;  // kNone when it is not there
  bool has(int32_t id) const { return id >= 0 && id < end_id() && index_of_id_[id] != 0; }
  std::string_view token(int32_t id) const;  // REQUIRES has(id)

  size_t size() const { return entries_.size(); }
  int32_t end_id() const { return static_cast<int32_t>(index_of_id_.size()); }  // past the largest

  // Ids are below this, for `count` tokens: what is allocated by id must be bounded by the file.
  static int64_t id_limit(size_t count);

 private:
  struct Entry {
    uint32_t begin;
    uint32_t length;
    int32_t id;
  };
  std::string_view text_of(const Entry& entry) const {
    return std::string_view(bytes_).substr(entry.begin, entry.length);
  }
  size_t slot_of(std::string_view token) const;
  void put(size_t slot, std::string_view token, int32_t id);

  std::string bytes_;  // all tokens, one after the other
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;        // hash table: index of the entry plus one; 0: empty
  std::vector<uint32_t> index_of_id_;  // the same, by id
};

}  // namespace fp8kv
