// Ends a text that comes in pieces before the first of some strings. What may be the begin of one
// is held back, so that nothing of it is ever shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

class StopText {
 public:
  // REQUIRES strings that are not empty.
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // What is certain to be shown. Of strings that end at the same place the longest counts, else the
  // one that ends first, however the text is cut into pieces.
  std::string add(std::string_view piece);
  // What was held back; no piece follows.
  std::string finish();
  // Whether one of the strings was there. All that came after it is gone.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace fp8kv
