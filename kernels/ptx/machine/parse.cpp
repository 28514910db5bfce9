#include "kernels/ptx/machine/parse.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace fp8kv::ptx {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

int number_at(std::string_view text, size_t at) {
  at = std::min(text.find_first_not_of(kSpaces, at), text.size());
  int value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

// Parses ".param .align 8 .b8 name[24]".
Parameter parse_parameter(std::string_view text, uint32_t& end) {
  const size_t bracket = text.find('[');
  const std::string_view before = trimmed(text.substr(0, bracket));
  const size_t space = before.find_last_of(kSpaces);
  if (space == before.npos) fail("a parameter ", quote(std::string(text)), " without a name");
  const std::string_view words = trimmed(before.substr(0, space));
  const int bytes = type_bytes(words.substr(words.rfind('.') + 1));
  const size_t align = words.find(".align");
  const auto step =
      static_cast<uint32_t>(align == words.npos ? bytes : number_at(words, align + 6));
  const auto count = static_cast<uint32_t>(bracket == text.npos ? 1 : number_at(text, bracket + 1));
  if (step == 0) fail("a parameter ", quote(std::string(text)), " without a size");
  const uint32_t offset = (end + step - 1) / step * step;
  end = offset + count * static_cast<uint32_t>(bytes);
  return {std::string(before.substr(space + 1)), offset, count * static_cast<uint32_t>(bytes)};
}

void parse_parameters(std::string_view head, ParsedKernel& kernel) {
  for (const std::string& each : split_operands(head)) {
    kernel.parameters.push_back(parse_parameter(each, kernel.parameter_bytes));
  }
}

// ".reg .b32 %r<12>" declares %r0 to %r11; ".reg .b16 low, high" declares two. PTX ISA 5.4.2.
void declare_registers(std::string_view text, ParsedKernel& kernel) {
  text = trimmed(text.substr(text.find(".reg") + 4));
  const size_t space = text.find_first_of(kSpaces);
  const int bytes = type_bytes(text.substr(1, space - 1));
  for (const std::string& name : split_operands(text.substr(space))) {
    const size_t angle = name.find('<');
    if (angle == name.npos) {
      const auto [found, fresh] = kernel.registers.emplace(name, bytes);
      if (!fresh && found->second != bytes) fail("register ", quote(name), " has two sizes");
      continue;
    }
    for (int i = 0; i < number_at(name, angle + 1); ++i) {
      kernel.registers.emplace(cat(name.substr(0, angle), i), bytes);
    }
  }
}

Statement parse_statement(std::string_view text) {
  Statement statement;
  statement.text = std::string(text);
  if (text[0] == '@') {
    const size_t space = text.find_first_of(kSpaces);
    statement.negated = text[1] == '!';
    const size_t begin = statement.negated ? 2 : 1;
    statement.guard = std::string(text.substr(begin, space - begin));
    text = trimmed(text.substr(space));
  }
  const size_t space = text.find_first_of(kSpaces);
  statement.opcode = std::string(text.substr(0, space));
  if (space != text.npos) statement.operands = split_operands(text.substr(space));
  return statement;
}

void add_statement(std::string_view text, ParsedKernel& kernel) {
  text = trimmed(text);
  if (text.empty()) return;
  if (text.starts_with(".reg")) return declare_registers(text, kernel);
  if (text[0] == '.') {
    if (text.starts_with(".pragma")) return;
    fail("directive ", quote(std::string(text)), " is not known to the executor");
  }
  std::string clean(text);
  std::replace(clean.begin(), clean.end(), '\n', ' ');
  std::replace(clean.begin(), clean.end(), '\t', ' ');
  kernel.statements.push_back(parse_statement(clean));
}

std::string without_comments(std::string_view body) {
  std::string text;
  text.reserve(body.size());
  for (size_t i = 0; i < body.size();) {
    const size_t comment = body.find("//", i);
    text += body.substr(i, comment - i);
    if (comment == body.npos) break;
    i = std::min(body.find('\n', comment), body.size());
  }
  return text;
}

// A brace or a colon ends a statement only at its beginning: vectors have braces too.
void parse_body(std::string_view body, ParsedKernel& kernel) {
  const std::string text = without_comments(body);
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view so_far = trimmed(std::string_view(text).substr(begin, i - begin));
    if (text.compare(i, 2, "::") == 0) {  // inside an opcode: L2::128B
      ++i;
    } else if (text[i] == ';') {
      add_statement(so_far, kernel);
      begin = i + 1;
    } else if (text[i] == ':' && so_far.find_first_of(kSpaces) == so_far.npos) {
      kernel.labels[std::string(so_far)] = static_cast<uint32_t>(kernel.statements.size());
      begin = i + 1;
    } else if ((text[i] == '{' || text[i] == '}') && so_far.empty()) {
      begin = i + 1;
    } else {
      i = std::min(text.find_first_of(";:{}", i + 1), text.size()) - 1;
    }
  }
}

size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i != text.npos; i = text.find_first_of("{}", i + 1)) {
    depth += text[i] == '{' ? 1 : -1;
    if (depth == 0) return i;
  }
  fail("a kernel without an end");
}

}  // namespace

int type_bytes(std::string_view type) {
  if (type == "pred") return 0;
  return type.empty() ? 0 : number_at(type, 1) / 8;
}

std::vector<std::string> split_operands(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != ',' || depth > 0) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = i + 1;
  }
  return parts;
}

std::vector<KernelText> find_kernels(std::string_view module) {
  std::vector<KernelText> kernels;
  constexpr std::string_view kEntry = ".entry ";
  for (size_t at = module.find(kEntry); at != module.npos; at = module.find(kEntry, at)) {
    const size_t open = module.find('(', at), close = module.find(')', open);
    const size_t brace = module.find('{', close);
    if (brace == module.npos) fail("a kernel without a body");
    const size_t end = closing_brace(module, brace);
    const size_t name = at + kEntry.size();
    kernels.push_back({std::string(trimmed(module.substr(name, open - name))),
                       module.substr(open + 1, close - open - 1),
                       module.substr(close + 1, brace - close - 1),
                       module.substr(brace + 1, end - brace - 1), module});
    at = end;
  }
  return kernels;
}

std::vector<std::byte> module_table(std::string_view module, const std::string& name) {
  const size_t at = module.find(" " + name + "[");
  if (at == module.npos) return {};
  const size_t line = module.rfind('\n', at) + 1, end = module.find(';', at);
  const size_t open = module.find('{', at);
  if (!module.substr(line).starts_with(".global") || open > end) return {};
  const std::string_view type = trimmed(module.substr(line, at - line));
  if (!type.ends_with(".b8")) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(number_at(module, at + 1 + name.size() + 1)));
  const auto values = split_operands(module.substr(open + 1, module.find('}', open) - open - 1));
  for (size_t i = 0; i < values.size(); ++i) {
    bytes.at(i) = static_cast<std::byte>(number_at(values[i], 0));
  }
  return bytes;
}

ParsedKernel parse_kernel(const KernelText& text) {
  return with_context(text.name, [&] {
    ParsedKernel kernel;
    kernel.name = text.name;
    kernel.module = text.module;
    parse_parameters(text.head, kernel);
    const size_t bounds = text.rules.find(".maxntid");
    if (bounds != text.rules.npos) {
      kernel.most_threads = 1;
      for (const std::string& size : split_operands(
               text.rules.substr(bounds + 8, text.rules.find('.', bounds + 1) - bounds - 8))) {
        kernel.most_threads *= static_cast<uint32_t>(number_at(size, 0));
      }
    }
    parse_body(text.body, kernel);
    return kernel;
  });
}

}  // namespace fp8kv::ptx
