// The tree behind Json. Only the sources of this room include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/interrupt.h"

namespace fp8kv {

// One value. It is small, because a hostile header may hold a hundred million of them.
struct JsonNode {
  struct Children {
    std::vector<JsonNode> values;
    std::vector<std::string> keys;  // object: one per value
    bool is_object = false;
  };
  // A number that is not a plain integer. It keeps its spelling, so that copying a document changes
  // no digit.
  struct Number {
    double value = 0;
    std::string text;
  };
  using Text = std::unique_ptr<std::string>;

  std::variant<std::monostate, bool, int64_t, std::unique_ptr<Number>, Text,
               std::unique_ptr<Children>>
      is;

  const Children* children() const {
    const auto* children = std::get_if<std::unique_ptr<Children>>(&is);
    return children ? children->get() : nullptr;
  }
  // Returns nullptr for plain integers.
  const Number* number() const {
    const auto* number = std::get_if<std::unique_ptr<Number>>(&is);
    return number ? number->get() : nullptr;
  }
};
static_assert(sizeof(JsonNode) == 16);

struct JsonDocument {
  // Freeing millions of nodes takes seconds. After an interrupt they are leaked, so that the user
  // does not wait.
  ~JsonDocument() {
    constexpr size_t kLarge = size_t{1} << 20;
    auto* children = std::get_if<std::unique_ptr<JsonNode::Children>>(&root.is);
    if (bytes > kLarge && children && is_interrupted()) children->release();
  }

  std::string source;
  JsonNode root;
  size_t bytes = 0;
};

}  // namespace fp8kv
