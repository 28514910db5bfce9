// SHA-256 of a stream of bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fp8kv {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view bytes);
  // The digest in 64 lower-case hex digits. Call it once.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fp8kv
