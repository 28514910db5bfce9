#include "text/steps/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "text/models/parts.h"

namespace fp8kv {
namespace {

template <auto free_function>
struct Free {
  template <typename T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};
template <typename T, auto free_function>
using Owned = std::unique_ptr<T, Free<free_function>>;

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return cat("error ", code);
  return reinterpret_cast<const char*>(buffer);
}

// Deeply recursive patterns need more than the 32 KiB of machine stack that JIT code starts with.
constexpr size_t kJitStackFirst = size_t{32} << 10;
constexpr size_t kJitStackMost = size_t{8} << 20;

}  // namespace

struct Pattern::Code {
  Owned<pcre2_code, pcre2_code_free> code;
};

struct PatternScratch::State {
  Owned<pcre2_match_data, pcre2_match_data_free> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_match_context, pcre2_match_context_free> context{pcre2_match_context_create(nullptr)};
  Owned<pcre2_jit_stack, pcre2_jit_stack_free> stack;
};

PatternScratch::PatternScratch() = default;
PatternScratch::~PatternScratch() = default;
PatternScratch::PatternScratch(PatternScratch&&) noexcept = default;
PatternScratch& PatternScratch::operator=(PatternScratch&&) noexcept = default;

Pattern Pattern::from_pcre2(const std::string& regex, const std::string& where) {
  // In this dialect, only "\n" ends a line for "." and "^".
  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* made =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                    PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE,
                    &error, &at, context.get());
  if (!made) {
    fail(where, ": the pattern ", quote(regex), " cannot be compiled: ", pcre2_message(error),
         " (at byte ", at, ")");
  }
  // Without JIT, as on systems that forbid it, the pattern is interpreted: slower, with equal
  // matches.
  pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
  Pattern pattern;
  pattern.code_ = std::make_shared<Code>(Code{Owned<pcre2_code, pcre2_code_free>(made)});
  pattern.where_ = where;
  return pattern;
}

Pattern Pattern::from_regex(std::string_view regex, const std::string& where) {
  Pcre2Spelling spelling = pcre2_from_oniguruma(regex, where);
  Pattern pattern = from_pcre2(spelling.fast, where);
  if (!spelling.differences.empty()) {
    pattern.exact_ = from_pcre2(spelling.exact, where).code_;
    pattern.differences_ = std::move(spelling.differences);
  }
  return pattern;
}

Pattern Pattern::from_json(const Json& pattern) {
  check_keys(pattern, {"String", "Regex"});
  if (pattern.size() != 1) {
    fail(pattern.where(), ": has ", count_of(pattern.size(), "member"),
         ", expected one of String and Regex");
  }
  const Json value = pattern.value(0);
  if (value.as_string().empty()) fail(value.where(), ": is empty, expected something to look for");
  if (pattern.key(0) == "Regex") return from_regex(value.as_string(), value.where());
  Pattern made;
  made.literal_ = value.as_string();
  return made;
}

const Pattern::Code* Pattern::code_for(std::string_view text) const {
  return differences_.has_any_of(text) ? exact_.get() : code_.get();
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, size_t from,
                                            PatternScratch& scratch, const Code* code) const {
  if (!code) {
    const size_t at = text.find(literal_, from);
    if (at == text.npos) return std::nullopt;
    return Match{at, at + literal_.size()};
  }
  if (!scratch.state_) scratch.state_ = std::make_unique<PatternScratch::State>();
  PatternScratch::State& state = *scratch.state_;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
  // The caller has validated the text. Checking it again at every match would take quadratic time.
  const auto match = [&] {
    return pcre2_match(code->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                       state.data.get(), state.context.get());
  };
  int result = match();
  if (result == PCRE2_ERROR_JIT_STACKLIMIT && !state.stack) {
    state.stack.reset(pcre2_jit_stack_create(kJitStackFirst, kJitStackMost, nullptr));
    pcre2_jit_stack_assign(state.context.get(), nullptr, state.stack.get());
    result = match();
  }
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    fail(where_, ": the pattern cannot be matched against the text at byte ", from, ": ",
         pcre2_message(result));
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(state.data.get());
  return Match{ends[0], ends[1]};
}

bool Pattern::can_match_nothing() const {
  uint32_t nothing = 0;
  if (code_) pcre2_pattern_info(code_->code.get(), PCRE2_INFO_MATCHEMPTY, &nothing);
  return nothing != 0;
}

size_t Pattern::after_char(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace fp8kv
