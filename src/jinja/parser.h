// Parses a template.
#pragma once

#include <string>
#include <string_view>

#include "jinja/syntax.h"

namespace fp8kv::jinja {

// `name`: for messages, "NAME: line N: what". Throws for anything that Jinja refuses to compile,
// and for other templates: include, import and extends.
Syntax parse_template(std::string_view source, const std::string& name);

}  // namespace fp8kv::jinja
