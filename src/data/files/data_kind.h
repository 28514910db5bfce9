// What the names of data files say: a table. What is in them is not looked at.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fp8kv {

enum class DataKind { unknown, text, json_lines, json, csv, tsv, parquet, arrow };

struct DataKindRow {
  std::string_view suffix;  // ".jsonl"
  DataKind kind;
};

std::span<const DataKindRow> data_kinds();

// By the last suffix, or by the one before it where the last says how the file is packed:
// "a.jsonl.gz". Capital letters are as good as small ones.
DataKind data_kind(const std::filesystem::path& path);

// ".txt, .json, ...": what can be read, for help texts and messages.
std::string data_kind_list();

}  // namespace fp8kv
