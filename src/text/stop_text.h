// Ends a text that comes in pieces before the first of several stop strings. A possible beginning
// of a stop string is held back, so no part of one is ever shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

class StopText {
 public:
  // REQUIRES non-empty strings.
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Returns the text that is certain to be shown. The stop string that ends first counts; ties: the
  // longest. The result does not depend on how the text is cut into pieces.
  std::string add(std::string_view piece);
  // Returns the text that was held back. Call it after the last piece.
  std::string finish();
  // Whether a stop string was found. All text behind it is dropped.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace fp8kv
