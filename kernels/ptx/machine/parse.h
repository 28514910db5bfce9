// Cuts the text of a PTX module into kernels, and a kernel into statements.
// It knows no instruction: decode.h does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::ptx {

// A kernel's text. The views are into the module's text.
struct KernelText {
  std::string name;        // mangled
  std::string_view head;   // parameters, in parentheses
  std::string_view rules;  // ".maxntid 128, 1, 1" and others
  std::string_view body;   // without its braces
  std::string_view module;
};

struct Statement {
  std::string guard;  // "%p1"; "" when there is none
  bool negated = false;
  std::string opcode;  // "ld.global.v4.f32"
  std::vector<std::string> operands;
  std::string text;  // as written, without the semicolon
};

struct Parameter {
  std::string name;
  uint32_t offset;
  uint32_t bytes;
};

struct ParsedKernel {
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t most_threads = 0;             // per block, from .maxntid; 0 if absent
  std::map<std::string, int> registers;  // bytes of each; 0 for predicates
  std::vector<Statement> statements;
  std::map<std::string, uint32_t> labels;  // index of the statement that follows
  std::string_view module;
};

// Finds all kernels of a module.  PTX ISA 5.4, 11.1.
std::vector<KernelText> find_kernels(std::string_view module);

// Throws an error that names the kernel.  PTX ISA 4.
ParsedKernel parse_kernel(const KernelText& text);

// The bytes of a module's table such as ".global .align 2 .b8 name[12] = {32, 0, 1};", with zeros
// for the rest. Empty if no table of that name has values.  PTX ISA 5.4.5.
std::vector<std::byte> module_table(std::string_view module, const std::string& name);

// Splits "a, {b, c}, [d+4]" into its three parts.
std::vector<std::string> split_operands(std::string_view text);

// The bytes of a type such as "u32" or "b8"; 0 for "pred".  PTX ISA 5.2.
int type_bytes(std::string_view type);

}  // namespace fp8kv::ptx
