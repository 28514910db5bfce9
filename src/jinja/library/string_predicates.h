// The methods of Python's str that ask what its characters are.
#pragma once

#include "jinja/library/methods.h"

namespace fp8kv::jinja {

Value isspace(Call& call);
Value isalpha(Call& call);
Value isdecimal(Call& call);
Value isdigit(Call& call);
Value isalnum(Call& call);
Value isascii(Call& call);
Value islower(Call& call);
Value isupper(Call& call);

}  // namespace fp8kv::jinja
