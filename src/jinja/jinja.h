// Jinja as chat templates use it: renders byte for byte like Jinja2 3.1.6 in transformers' sandbox,
// or throws. Covers what templates do with messages. Leaves out files (include, extends), random
// functions, and features that no template has used.
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
  // `name`: for messages, "NAME: line N: what". Throws for an invalid template.
  Template(std::string_view source, const std::string& name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  using Variables = std::vector<std::pair<std::string, Value>>;
  // `clock`: seconds since 1970, for strftime_now. Throws where Jinja2 would, if the template
  // raises an exception, and beyond a limit. Thread-safe if `clock` is.
  MarkedText render(const Variables& variables, const Limits& limits,
                    const std::function<int64_t()>& clock) const;

  // The text and the strings of the template itself, with zero bytes between them.
  const std::string& literals() const;

 private:
  std::unique_ptr<const Syntax> syntax_;
};

}  // namespace fp8kv::jinja
