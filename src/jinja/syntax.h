// A parsed template: expressions and statements as trees.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/values/operators.h"
#include "jinja/values/value.h"

namespace fp8kv::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list;     // *values
  ExpressionPtr members;  // **values
};

enum class ExpressionKind {
  constant,
  name,
  list,
  tuple,
  dict,       // parts: key, value, key, value ...
  attribute,  // parts[0].text
  item,       // parts[0][parts[1]]
  slice,      // parts[0][parts[1]:parts[2]:parts[3]], where any but the first may be absent
  call,       // parts[0](arguments)
  filter,     // parts[0]|text(arguments); no parts in a filter block
  test,       // parts[0] is text(arguments)
  negative,
  positive,
  logical_not,
  logical_and,
  logical_or,
  comparison,  // parts[0] comparisons[0] parts[1] comparisons[1] parts[2] ...
  arithmetic,
  concatenation,
  conditional,  // parts: condition, value, otherwise, which may be absent
};

enum class Comparison { equal, unequal, less, at_most, greater, at_least, in, not_in };

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 1;
  int height = 1;  // levels of nested expressions
  int symbol = 0;  // for a name: its index in Syntax::names
  std::string text;
  Value constant;
  Operator op = Operator::add;
  std::vector<ExpressionPtr> parts;
  std::vector<Comparison> comparisons;
  CallArguments arguments;
};

// The target of an assignment: a name, a member of a namespace, or several targets.
struct Target {
  int symbol = 0;
  std::string member;  // "": the name itself
  std::vector<Target> parts;
  bool is_tuple = false;
};

struct Statement;
using Block = std::vector<Statement>;

struct Parameter {
  int symbol = 0;
  std::string name;
  ExpressionPtr otherwise;  // absent: no default
};

// The body of a macro, or the one that a call block passes to a macro.
struct MacroBody {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct Branch {
  ExpressionPtr condition;  // absent: this is the else branch
  Block body;
};

enum class StatementKind {
  data,
  print,
  assign,
  assign_block,  // its filters, if any, are in `value`
  condition,
  loop,
  macro,
  call_block,
  filter_block,
  scope,  // the tags with, generation, autoescape false and block
  break_loop,
  continue_loop,
};

struct Statement {
  StatementKind kind = StatementKind::data;
  int line = 1;
  MarkedText data;
  std::vector<ExpressionPtr> values;  // printed, assigned, looped over
  std::vector<Target> targets;
  ExpressionPtr condition;  // for a loop: its filter
  bool recursive = false;
  Block body;
  Block otherwise;
  std::vector<Branch> branches;
  std::unique_ptr<const MacroBody> macro;
};

struct Syntax {
  std::string name;  // for messages
  Block body;
  std::vector<std::string> names;  // the name of each symbol
  // The template's own text and strings, each followed by a zero byte.
  std::string literals;
};

}  // namespace fp8kv::jinja
