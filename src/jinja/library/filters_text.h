// The filters that turn a value into text or a number.
#pragma once

#include "jinja/library/builtin.h"

namespace fp8kv::jinja {

Value filter_abs(Call& call);
Value filter_capitalize(Call& call);
Value filter_center(Call& call);
Value filter_default(Call& call);
Value filter_escape(Call& call);
Value filter_float(Call& call);
Value filter_forceescape(Call& call);
Value filter_format(Call& call);
Value filter_indent(Call& call);
Value filter_int(Call& call);
Value filter_lower(Call& call);
Value filter_replace(Call& call);
Value filter_round(Call& call);
Value filter_safe(Call& call);
Value filter_string(Call& call);
Value filter_title(Call& call);
Value filter_tojson(Call& call);
Value filter_trim(Call& call);
Value filter_truncate(Call& call);
Value filter_upper(Call& call);
Value filter_wordcount(Call& call);

}  // namespace fp8kv::jinja
