#include "text/steps/shared_steps.h"

#include "base/error.h"
#include "text/models/parts.h"

namespace fp8kv {

MetaspaceOptions metaspace_from(const Json& part) {
  using Prepend = MetaspaceOptions::Prepend;
  check_keys(part,
             {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  MetaspaceOptions options{character_at(part, "replacement"), Prepend::always,
                           part.get_bool("split", true)};
  const std::string scheme = part.get_string("prepend_scheme", "always");
  if (scheme == "first") {
    options.prepend = Prepend::first;
  } else if (scheme == "never") {
    options.prepend = Prepend::never;
  } else if (scheme != "always") {
    fail(part.at("prepend_scheme").where(), ": is ", quote(scheme),
         ", expected always, first or never");
  }
  // Older files use this flag, which must not contradict the scheme.
  if (!part.get_bool("add_prefix_space", true) && options.prepend != Prepend::never) {
    fail(part.where(), ": add_prefix_space is false, but prepend_scheme is not never");
  }
  return options;
}

void check_byte_level(const Json& part) {
  check_keys(part, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

}  // namespace fp8kv
