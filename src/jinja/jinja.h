// Jinja as chat templates use it: what Jinja2 3.1.6 renders in transformers' sandbox, byte for
// byte, or an error. Takes what templates do with messages; leaves out files (include, extends),
// what is random, and what nobody has used.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/values/marked_text.h"
#include "jinja/values/runtime.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

struct Syntax;

class Template {
 public:
  // `name`: for messages, "NAME: line N: what". Throws for what is no template.
  Template(std::string_view source, const std::string& name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  using Variables = std::vector<std::pair<std::string, Value>>;
  // `clock`: seconds since 1970, for strftime_now. Throws where Jinja2 would, where the template
  // raises an exception, and past a limit. Thread-safe where `clock` is.
  MarkedText render(const Variables& variables, const Limits& limits,
                    const std::function<int64_t()>& clock) const;

  // What the template itself may write: its text and its strings, with zero bytes between them.
  const std::string& literals() const;

 private:
  std::unique_ptr<const Syntax> syntax_;
};

}  // namespace fp8kv::jinja
