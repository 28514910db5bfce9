// A table: the kind of a data file by its name. Does not look into files.
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

// Decides by the last suffix, or by the one before it if the last one names a packing:
// "a.jsonl.gz". Case does not matter.
DataKind data_kind(const std::filesystem::path& path);

// ".txt, .json, ...": the readable kinds, for help texts and messages.
std::string data_kind_list();

}  // namespace fp8kv
