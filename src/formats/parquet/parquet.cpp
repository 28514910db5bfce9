#include "formats/parquet/parquet.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "formats/parquet/column_reader.h"
#include "json/json.h"

namespace fp8kv {
namespace {

// A column, and the number of its entries already used by the current row.
struct Leaf {
  Leaf(std::string_view file, const ParquetChunk& chunk, const ParquetNode& node,
       const ParquetLimits& limits)
      : reader(file, chunk, node, limits.page_bytes) {}

  ColumnReader reader;
  uint64_t in_row = 0;
};

// Builds one row from the entries of its columns. Levels tell which of the lists and groups above a
// value start anew, and which are absent. Source: the Dremel paper, by S. Melnik et al., VLDB 2010,
// section 4.
class RowBuilder {
 public:
  using Leaves = std::vector<std::unique_ptr<Leaf>>;  // by leaf number; null if not read

  RowBuilder(Leaves& leaves, const ParquetLimits& limits, JsonWriter& json)
      : leaves_(leaves), limits_(limits), json_(json) {}

  void field(const ParquetNode& node) {
    json_.key(node.name);
    with_context(cat("column ", quote(node.name)), [&] {
      begin_row(node);
      content(node);
      end_row(node);
    });
  }

 private:
  void begin_row(const ParquetNode& node) {
    for (size_t i = node.first_leaf; i < node.last_leaf; ++i) {
      leaves_[i]->in_row = 0;
      if (!leaves_[i]->reader.has_entry()) fail("has fewer rows than the metadata says");
      if (leaves_[i]->reader.rep() != 0) fail("has levels that contradict each other");
    }
  }

  void end_row(const ParquetNode& node) {
    for (size_t i = node.first_leaf; i < node.last_leaf; ++i) {
      ColumnReader& column = leaves_[i]->reader;
      if (column.has_entry() && column.rep() != 0) fail("has levels that contradict each other");
    }
  }

  // The next entry of a leaf. Throws unless it belongs to the current row.
  ColumnReader& entry(size_t leaf) {
    Leaf& of = *leaves_[leaf];
    if (!of.reader.has_entry() || (of.in_row > 0 && of.reader.rep() == 0)) {
      fail("has levels that contradict each other");
    }
    return of.reader;
  }

  void pop(size_t leaf) {
    if (++leaves_[leaf]->in_row > limits_.row_values) {
      fail("has more than ", limits_.row_values, " values");
    }
    if (leaves_[leaf]->in_row % 4096 == 0) check_interrupt();
    leaves_[leaf]->reader.pop();
  }

  // Skips the entries that stand for an absent node.
  void pop_absent(const ParquetNode& node) {
    for (size_t i = node.first_leaf; i < node.last_leaf; ++i) {
      if (entry(i).def() >= node.max_def) fail("has levels that contradict each other");
      pop(i);
    }
  }

  void content(const ParquetNode& node) {
    const bool is_there = entry(node.first_leaf).def() >= node.max_def;
    if (node.repetition == ParquetRepetition::repeated) return list(node, nullptr);
    if (!is_there) {
      pop_absent(node);
      json_.null();
      return;
    }
    value(node);
  }

  void value(const ParquetNode& node) {
    if (node.is_leaf()) return leaf(node);
    const ParquetNode& only = node.children[0];
    if (node.is_list && node.children.size() == 1 &&
        only.repetition == ParquetRepetition::repeated) {
      return list(only, element_of(node, only));
    }
    json_.begin_object();
    for (const ParquetNode& child : node.children) {
      json_.key(child.name);
      content(child);
    }
    json_.end_object();
  }

  // The element of a list: the only field of the repeated group or, by the rules for older files,
  // the group itself (nullptr). Source: LogicalTypes.md, "Backward-compatibility rules".
  static const ParquetNode* element_of(const ParquetNode& list, const ParquetNode& repeated) {
    const bool is_element = repeated.children.size() != 1 || repeated.name == "array" ||
                            repeated.name == list.name + "_tuple";
    return is_element ? nullptr : &repeated.children[0];
  }

  // `element` is nullptr if `repeated` itself is the element.
  void list(const ParquetNode& repeated, const ParquetNode* element) {
    json_.begin_array();
    if (entry(repeated.first_leaf).def() < repeated.max_def) {
      pop_absent(repeated);
    } else {
      do {
        element ? content(*element) : value(repeated);
      } while (goes_on(repeated));
    }
    json_.end_array();
  }

  bool goes_on(const ParquetNode& repeated) {
    ColumnReader& first = leaves_[repeated.first_leaf]->reader;
    if (!first.has_entry() || first.rep() < repeated.max_rep) return false;
    if (first.rep() > repeated.max_rep) fail("has levels that contradict each other");
    return true;
  }

  void leaf(const ParquetNode& node) {
    ColumnReader& column = entry(node.first_leaf);
    if (!column.has_value()) fail("has levels that contradict each other");
    const ParquetValue value = column.value();
    switch (node.type) {
      case ParquetType::boolean:
        json_.value(value.number != 0);
        break;
      case ParquetType::int32:
        node.is_unsigned ? json_.value(uint64_t{static_cast<uint32_t>(value.number)})
                         : json_.value(value.number);
        break;
      case ParquetType::int64:
        node.is_unsigned ? json_.value(static_cast<uint64_t>(value.number))
                         : json_.value(value.number);
        break;
      case ParquetType::real32:
      case ParquetType::real64:
        std::isfinite(value.real) ? json_.value(value.real) : json_.null();
        break;
      default:
        text(value.bytes);
    }
    pop(node.first_leaf);
  }

  void text(std::string_view bytes) {
    bytes_ += bytes.size();
    if (bytes_ > limits_.row_bytes) fail("has more than ", human_bytes(limits_.row_bytes));
    if (size_t bad = 0; !is_utf8(bytes, &bad)) {
      throw Error(cat("is not valid UTF-8 at its byte ", bad), "name a column of text");
    }
    json_.value(bytes);
  }

  Leaves& leaves_;
  const ParquetLimits& limits_;
  JsonWriter& json_;
  uint64_t bytes_ = 0;
};

}  // namespace

ParquetFile::ParquetFile(std::string_view bytes, std::string label, const ParquetLimits& limits)
    : bytes_(bytes), label_(std::move(label)), limits_(limits) {
  footer_ = with_context(label_, [&] { return read_parquet_footer(bytes); });
}

std::vector<std::string> ParquetFile::columns() const {
  std::vector<std::string> names;
  for (const ParquetNode& node : footer_.root.children) names.push_back(node.name);
  return names;
}

struct ParquetRows::Group {
  RowBuilder::Leaves leaves;
  uint64_t left = 0;
};

ParquetRows::ParquetRows(const ParquetFile& file, const std::vector<std::string>& columns)
    : file_(file) {
  for (const ParquetNode& node : file.footer_.root.children) {
    if (std::find(columns.begin(), columns.end(), node.name) != columns.end()) {
      columns_.push_back(&node);
    }
  }
}

ParquetRows::~ParquetRows() = default;

void ParquetRows::open_group() {
  const ParquetRowGroup& from = file_.footer_.groups[next_group_++];
  group_ = std::make_unique<Group>();
  group_->leaves.resize(from.chunks.size());
  group_->left = from.rows;
  const auto add = [&](const ParquetNode& node, const auto& self) -> void {
    if (node.is_leaf()) {
      group_->leaves[node.first_leaf] =
          std::make_unique<Leaf>(file_.bytes_, from.chunks[node.first_leaf], node, file_.limits_);
    }
    for (const ParquetNode& child : node.children) self(child, self);
  };
  for (const ParquetNode* column : columns_) {
    with_context(cat("column ", quote(column->name)), [&] { add(*column, add); });
  }
}

// Opens the next group with rows. REQUIRES such a group ahead.
void ParquetRows::open_next_group() {
  while (file_.footer_.groups[next_group_].rows == 0) ++next_group_;
  open_group();
}

void ParquetRows::skip(uint64_t rows) {
  rows = std::min(rows, file_.footer_.rows - number_);
  while (rows > 0) {
    check_interrupt();
    uint64_t gone = 0;
    if (group_ && group_->left > 0) {
      gone = std::min(rows, group_->left);
      with_context(cat(file_.label_, ": row ", number_ + 1), [&] {
        for (const auto& leaf : group_->leaves) {
          if (leaf) leaf->reader.skip_rows(gone);
        }
      });
      group_->left -= gone;
    } else if (const uint64_t in_group = file_.footer_.groups[next_group_].rows; in_group <= rows) {
      gone = in_group;
      ++next_group_;
    } else {
      open_group();
    }
    number_ += gone;
    rows -= gone;
  }
}

bool ParquetRows::next() {
  if (number_ == file_.footer_.rows) return false;
  ++number_;
  const auto where = [this] { return cat(file_.label_, ": row ", number_); };
  try {
    while (!group_ || group_->left == 0) open_next_group();
    --group_->left;
    JsonWriter json(JsonWriter::Layout::one_line);
    json.begin_object();
    RowBuilder builder(group_->leaves, file_.limits_, json);
    for (const ParquetNode* column : columns_) builder.field(*column);
    json_ = json.end_object().text();
  } catch (Error& error) {
    if (error.kind() != ErrorKind::interrupted) error.add_context(where());
    throw;
  }
  return true;
}

}  // namespace fp8kv
