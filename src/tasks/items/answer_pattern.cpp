#include "tasks/items/answer_pattern.h"

#include <algorithm>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace fp8kv {
namespace {

template <auto free_function>
struct FreePcre2 {
  template <typename T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};
template <typename T, auto free_function>
using OwnedPcre2 = std::unique_ptr<T, FreePcre2<free_function>>;

constexpr uint32_t kMaxHeapKib = 16 << 10;

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return cat("error ", code);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR units_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

size_t after_character(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

// Returns the first group that is not empty, or the whole match if the pattern has no groups.
std::string_view chosen_group(std::string_view text, pcre2_match_data* data, uint32_t groups) {
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
  for (uint32_t group = groups == 0 ? 0 : 1; group <= groups; ++group) {
    const PCRE2_SIZE begin = ends[2 * group], end = ends[2 * group + 1];
    if (begin != PCRE2_UNSET && begin < end) return text.substr(begin, end - begin);
  }
  return "";
}

}  // namespace

struct AnswerPattern::Code {
  OwnedPcre2<pcre2_code, pcre2_code_free> code;
  OwnedPcre2<pcre2_match_context, pcre2_match_context_free> limits;
  uint32_t groups = 0;
};

AnswerPattern::AnswerPattern(const std::string& regex, const std::string& where) {
  if (regex.size() > kMaxBytes) {
    fail(where, ": the pattern has ", regex.size(), " bytes, expected at most ", kMaxBytes);
  }
  // Like in Python, only "\n" ends a line for "." and "$", and \d, \s and \w are Unicode's.
  const OwnedPcre2<pcre2_compile_context, pcre2_compile_context_free> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  Code code;
  code.code.reset(pcre2_compile(units_of(regex), regex.size(),
                                PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                                context.get()));
  if (!code.code) {
    fail(where, ": the pattern ", quote(regex), " cannot be compiled: ", message_of(error),
         " (at byte ", at, ")");
  }
  pcre2_pattern_info(code.code.get(), PCRE2_INFO_CAPTURECOUNT, &code.groups);
  code.limits.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(code.limits.get(), kMaxSteps);
  pcre2_set_heap_limit(code.limits.get(), kMaxHeapKib);
  code_ = std::make_shared<const Code>(std::move(code));
}

AnswerPattern::Found AnswerPattern::find(std::string_view text, Which which) const {
  const OwnedPcre2<pcre2_match_data, pcre2_match_data_free> data(
      pcre2_match_data_create_from_pattern(code_->code.get(), nullptr));
  Found found;
  for (size_t from = 0; from <= text.size();) {
    const int result =
        pcre2_match(code_->code.get(), units_of(text), text.size(), from,
                    from == 0 ? 0 : PCRE2_NO_UTF_CHECK, data.get(), code_->limits.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) return {Outcome::gave_up, ""};
    found = {Outcome::found, std::string(chosen_group(text, data.get(), code_->groups))};
    if (which == Which::first) break;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    const size_t end = std::max<size_t>(ends[1], from);
    from = ends[0] == ends[1] ? after_character(text, end) : end;
  }
  return found;
}

}  // namespace fp8kv
