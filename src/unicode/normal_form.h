// The normal forms of Unicode (UAX 15), in time linear in the text but for the sorting of the marks
// of one character.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// As the tokenizers library has them: characters added after Unicode 12 stay as they are.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

// `text`, which is valid UTF-8, in the form. The result is `text` itself where nothing changes,
// else it lies in `buffer`. `heard`, when given, is called every 32 KiB or so, and may throw.
std::string_view normal_form(std::string_view text, NormalForm form, std::string& buffer,
                             void (*heard)() = nullptr);

}  // namespace fp8kv
