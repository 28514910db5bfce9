#include "jinja/jinja.h"

#include "jinja/interpreter.h"
#include "jinja/parser.h"
#include "jinja/syntax.h"

namespace fp8kv::jinja {

Template::Template(std::string_view source, const std::string& name)
    : syntax_(std::make_unique<const Syntax>(parse_template(source, name))) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

MarkedText Template::render(const Variables& variables, const Limits& limits,
                            const std::function<int64_t()>& clock) const {
  Runtime runtime(syntax_->name, limits, clock);
  return Interpreter(*syntax_, runtime, variables).run();
}

const std::string& Template::literals() const {
  return syntax_->literals;
}

}  // namespace fp8kv::jinja
