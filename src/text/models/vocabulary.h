// A one-to-one map of tokens and ids. Ids may have gaps.
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
  // Reads {"token": id, ...}. Throws for ids that are negative, repeated, or far beyond the number
  // of tokens: the file's size must bound the memory.
  explicit Vocabulary(const Json& tokens);

  // Reserves room for `count` tokens. REQUIRES less than 4 GiB of bytes in total.
  explicit Vocabulary(size_t count);
  // Gives the token the next id, end_id(). Returns false if the token is already there. REQUIRES at
  // most `count` appended tokens.
  bool append(std::string_view token);
  void skip(size_t ids);  // leaves the next ids without tokens

  int32_t find(std::string_view token) const;  // kNone if it is missing
  bool has(int32_t id) const { return id >= 0 && id < end_id() && index_of_id_[id] != 0; }
  std::string_view token(int32_t id) const;  // REQUIRES has(id)

  size_t size() const { return entries_.size(); }
  int32_t end_id() const { return static_cast<int32_t>(index_of_id_.size()); }  // largest id + 1

  // The upper bound of ids for `count` tokens: the file's size must bound memory indexed by id.
  static int64_t id_limit(size_t count);

 private:
  struct StoredToken {
    uint32_t begin;
    uint32_t length;
    int32_t id;
  };
  std::string_view text_of(const StoredToken& token) const {
    return std::string_view(bytes_).substr(token.begin, token.length);
  }
  size_t slot_of(std::string_view token) const;
  void put(size_t slot, std::string_view token, int32_t id);

  std::string bytes_;  // all tokens, one after the other
  std::vector<StoredToken> entries_;
  std::vector<uint32_t> slots_;        // hash table of entry index plus one; 0: empty
  std::vector<uint32_t> index_of_id_;  // entry index plus one, by id; 0: none
};

}  // namespace fp8kv
