// The normal forms of Unicode (UAX 15). Time is linear in the text, except for sorting the marks of
// one character.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// The forms of the tokenizers library: characters added after Unicode 12 stay unchanged.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Returns `text`, which must be valid UTF-8, in the normal form. If nothing changes the result is
// `text` itself, else it lies in `buffer`. If given, `heard` is called about every 32 KiB, and may
// throw.
std::string_view normal_form(std::string_view text, NormalForm form, std::string& buffer,
                             void (*heard)() = nullptr);

}  // namespace fp8kv
