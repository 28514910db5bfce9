// Text that remembers for each byte whether the template wrote it, or whether it came from the
// input, such as the text of messages. So text typed by users never passes for the template's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::jinja {

enum class Origin : uint8_t { from_template, given };
// The origin of punctuation and digits that values get when they become text.
inline constexpr Origin kOurs = Origin::from_template;

class MarkedText {
 public:
  // The bytes up to `end`, starting at the end of the previous run.
  struct Run {
    size_t end;
    Origin origin;
    bool operator==(const Run&) const = default;
  };

  MarkedText() = default;
  MarkedText(std::string bytes, Origin origin);

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Runs in order. Neighbours have different origins, and none is empty.
  std::span<const Run> runs() const { return runs_; }

  void append(std::string_view bytes, Origin origin);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  // Appends the bytes [begin, end) of `other`. REQUIRES begin <= end <= other.size(), and a text
  // other than this one.
  void append(const MarkedText& other, size_t begin, size_t end);
  MarkedText part(size_t begin, size_t end) const;

  // Calls f(bytes, origin) for each run within [begin, end).
  template <typename F>
  void for_each_run(size_t begin, size_t end, F&& f) const {
    for (size_t i = run_at(begin); begin < end; ++i) {
      const size_t until = runs_[i].end < end ? runs_[i].end : end;
      f(std::string_view(bytes_).substr(begin, until - begin), runs_[i].origin);
      begin = until;
    }
  }

 private:
  size_t run_at(size_t byte) const;  // index of the run that contains the byte

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace fp8kv::jinja
