#include "kernels/ptx/decode.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "kernels/ptx/machine/kernel_name.h"
#include "kernels/ptx/operations/operations.h"

namespace fp8kv::ptx {
namespace {

constexpr std::pair<const char*, Special> kSpecials[] = {
    {"%tid.x", Special::tid_x},       {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},       {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},   {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x}, {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z}, {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},     {"%ntid.z", Special::ntid_z},
    {"%laneid", Special::laneid}};

std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= opcode.size();) {
    const size_t dot = std::min(opcode.find('.', at), opcode.size());
    parts.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// Splits "{a, b}" and "a|p" into two operands, in their order.
std::vector<std::string> flattened(const std::vector<std::string>& operands) {
  std::vector<std::string> flat;
  for (const std::string& each : operands) {
    const size_t bar = each.find('|');
    if (each[0] == '{') {
      for (std::string& part : split_operands(each.substr(1, each.size() - 2))) {
        flat.push_back(std::move(part));
      }
    } else if (bar != each.npos) {
      flat.push_back(each.substr(0, bar));
      flat.push_back(each.substr(bar + 1));
    } else {
      flat.push_back(each);
    }
  }
  return flat;
}

class Decoder {
 public:
  explicit Decoder(const ParsedKernel& kernel) : kernel_(kernel) {
    program_.name = readable_name(kernel.name);
    program_.parameters = kernel.parameters;
    program_.parameter_bytes = kernel.parameter_bytes;
    program_.most_threads = kernel.most_threads;
    for (const auto& [name, bytes] : kernel.registers) named_[name] = place(bytes, 0);
    program_.first_constant = program_.registers.size();
  }

  Program run() {
    for (const Statement& statement : kernel_.statements) {
      with_context(cat(program_.name, ": '", statement.text, "'"), [&] { add(statement); });
    }
    // Every program ends with a ret.
    add({"", false, "ret", {}, "end of the kernel"});
    return std::move(program_);
  }

 private:
  struct Address {
    std::string base;
    int64_t offset = 0;
  };

  // A new register for all lanes.  `bytes` is 0 for a predicate.
  Operand place(int bytes, uint32_t defined) {
    const auto at = static_cast<uint32_t>(program_.registers.size());
    constexpr size_t kLine = 64;
    const size_t size = static_cast<size_t>(bytes) * kLanes;
    program_.registers.resize(at + (size + kLine - 1) / kLine * kLine + (bytes == 0 ? kLine : 0),
                              std::byte{0xCD});
    program_.defined.push_back(defined);
    return {at, static_cast<uint32_t>(program_.defined.size() - 1)};
  }

  Operand constant(uint64_t value, int bytes) {
    const auto [found, fresh] = constants_.try_emplace({value, bytes});
    if (!fresh) return found->second;
    found->second = place(bytes, kAllLanes);
    std::byte* to = &program_.registers[found->second.at];
    if (bytes == 0) {
      const uint32_t lanes = value != 0 ? kAllLanes : 0;
      std::memcpy(to, &lanes, sizeof lanes);
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(to + lane * bytes, &value, static_cast<size_t>(bytes));
    }
    return found->second;
  }

  Operand special(Special which, uint32_t offset = 0) {
    const auto [found, fresh] = specials_.try_emplace({which, offset});
    if (fresh) {
      found->second = place(which == Special::parameters ? 8 : 4, kAllLanes);
      program_.specials.push_back({which, found->second, offset});
    }
    return found->second;
  }

  // A register, a number, a special register, or the address of a parameter or of shared memory.
  Operand operand(const std::string& text, int bytes) {
    if (const auto named = named_.find(text); named != named_.end()) {
      const int own = kernel_.registers.at(text);
      if (own != bytes) fail("register ", text, " has ", own, " bytes, expected ", bytes);
      return named->second;
    }
    for (const auto& [name, which] : kSpecials) {
      if (text == name) return special(which);
    }
    for (const Parameter& each : kernel_.parameters) {
      if (text == each.name) return special(Special::parameters, each.offset);
    }
    if (text.find("fp8kv_shared") != text.npos || text == "shared") return constant(0, bytes);
    if (text.find_first_of("_$") != text.npos) return table(text, bytes);
    return constant(number(text), bytes);
  }

  // The address of a table of the module.
  Operand table(const std::string& name, int bytes) {
    const auto [found, fresh] = program_.tables.try_emplace(name);
    if (fresh) found->second = module_table(kernel_.module, name);
    if (found->second.empty()) fail("there is no table ", name, " with its values in the module");
    return constant(reinterpret_cast<uint64_t>(found->second.data()), bytes);
  }

  // PTX ISA 4.5.
  static uint64_t number(const std::string& text) {
    char* end = nullptr;
    uint64_t value = 0;
    const bool is_float = text.starts_with("0f") || text.starts_with("0d");
    if (is_float) {
      value = std::strtoull(text.c_str() + 2, &end, 16);
    } else if (text[0] == '-') {
      value = static_cast<uint64_t>(std::strtoll(text.c_str(), &end, 0));
    } else {
      value = std::strtoull(text.c_str(), &end, 0);
    }
    if (*end == 'U') ++end;
    if (*end != '\0' || end == text.c_str()) fail("operand ", quote(text), " is not known");
    return value;
  }

  // Parses "[base+8]".
  static Address address(const std::string& text) {
    if (text.size() < 3 || text[0] != '[') fail("expected an address, found ", quote(text));
    const std::string inside = text.substr(1, text.size() - 2);
    const size_t plus = inside.find('+');
    if (plus == inside.npos) return {inside, 0};
    return {inside.substr(0, plus), std::strtoll(inside.c_str() + plus + 1, nullptr, 0)};
  }

  int bytes_of(const std::string& text, int otherwise) const {
    const auto found = kernel_.registers.find(text);
    return found == kernel_.registers.end() ? otherwise : found->second;
  }

  // ld.space.v4.type, in any of its forms. Without a space, the address is generic, which is a
  // global address.
  Operation access(const Statement& statement, const std::vector<std::string>& flat) const {
    Access which{"global", "", 0, 1, statement.opcode.starts_with("st")};
    for (const std::string& part : parts_of(statement.opcode)) {
      if (part == "global" || part == "shared" || part == "param") which.space = part;
      if (part == "v2" || part == "v4") which.registers = part[1] - '0';
      which.type = part;
    }
    const size_t first = which.store ? 1 : 0, count = static_cast<size_t>(which.registers);
    if (flat.size() != count + 1) fail("expected ", count, " registers and an address");
    which.register_bytes = std::max(2, type_bytes(which.type));
    for (size_t i = first; i < first + count; ++i) {
      which.register_bytes = bytes_of(flat[i], which.register_bytes);
    }
    const std::string values(count, static_cast<char>('0' + which.register_bytes));
    const char* at = which.space == "shared" ? "s" : "g";
    return {find_access(which), which.store ? ":" + (at + values) : values + ":" + at};
  }

  Operation find(const Statement& statement, const std::vector<std::string>& flat) const {
    const std::string& opcode = statement.opcode;
    const std::string family = opcode.substr(0, opcode.find('.'));
    if (family == "ld" || family == "st") return access(statement, flat);
    std::string name = opcode;
    if (family == "mov" && statement.operands[0][0] == '{') name = "unpack" + opcode.substr(3);
    if (family == "mov" && statement.operands[1][0] == '{') name = "pack" + opcode.substr(3);
    const auto found = all_operations().find(name);
    if (found != all_operations().end()) return found->second;
    if (family != "cvt" || flat.size() != 2) return {};
    const int to = bytes_of(flat[0], 0), from = bytes_of(flat[1], 0);
    return {find_wide_conversion(opcode, to, from),
            {static_cast<char>('0' + to), ':', static_cast<char>('0' + from)},
            Kind::narrows};
  }

  // Adds one operand of the kind that the operation's letter says.
  void add_operand(char kind, const std::string& text, Instruction& instruction) {
    if (kind == 'i') {
      instruction.immediate = static_cast<int32_t>(number(text));
      return;
    }
    Operand& to = instruction.operand[instruction.n_operands++];
    if (kind == 's' || kind == 'g') {
      const Address found = address(text);
      if (instruction.offset != 0) fail("two addresses with offsets");
      instruction.offset = found.offset;
      to = operand(found.base, kind == 's' ? 4 : 8);
    } else {
      to = operand(text, kind == 'p' ? 0 : kind - '0');
    }
  }

  void add(const Statement& statement) {
    const bool jumps = statement.opcode == "bra" || statement.opcode == "bra.uni";
    const std::vector<std::string> flat =
        jumps ? std::vector<std::string>{} : flattened(statement.operands);
    const Operation operation = find(statement, flat);
    if (!operation.run) {
      throw Error("the executor does not know this instruction", "add it to kernels/ptx",
                  ErrorKind::device);
    }
    Instruction instruction;
    instruction.run = operation.run;
    instruction.kind = operation.kind;
    if (!statement.guard.empty()) {
      instruction.guarded = true;
      instruction.negated = statement.negated;
      instruction.guard = operand(statement.guard, 0);
    }
    if (operation.operands.size() != flat.size() + 1) {
      fail("expected ", operation.operands.size() - 1, " operands, found ", flat.size());
    }
    size_t next = 0;
    for (const char kind : operation.operands) {
      if (kind == ':') {
        instruction.n_written = instruction.n_operands;
      } else {
        add_operand(kind, flat[next++], instruction);
      }
    }
    if (jumps) instruction.target = target(statement);
    program_.code.push_back(instruction);
    program_.text.push_back(statement.text);
  }

  uint32_t target(const Statement& statement) const {
    const auto found = kernel_.labels.find(statement.operands.at(0));
    if (found == kernel_.labels.end()) fail("there is no label ", statement.operands[0]);
    return found->second;
  }

  const ParsedKernel& kernel_;
  Program program_;
  std::map<std::string, Operand> named_;
  std::map<std::pair<uint64_t, int>, Operand> constants_;
  std::map<std::pair<Special, uint32_t>, Operand> specials_;
};

}  // namespace

Program decode(const ParsedKernel& kernel) {
  return Decoder(kernel).run();
}

}  // namespace fp8kv::ptx
