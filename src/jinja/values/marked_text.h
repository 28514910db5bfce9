// Text that remembers of each byte whether the template wrote it or it was given to the template,
// as the text of messages is: so that what a user types is never taken for what a template says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::jinja {

enum class Origin : uint8_t { from_template, given };
// Of what values look like as text: quotes, brackets, digits.
inline constexpr Origin kOurs = Origin::from_template;

class MarkedText {
 public:
  // Bytes up to `end`, from where the run before it ends.
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
  // In order; no two neighbours have the same origin, and none is empty.
  std::span<const Run> runs() const { return runs_; }

  void append(std::string_view bytes, Origin origin);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  // The bytes of `other` from `begin` to before `end`. REQUIRES begin <= end <= other.size(), and
  // another text than this.
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
  size_t run_at(size_t byte) const;  // index of the run that holds it

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace fp8kv::jinja
