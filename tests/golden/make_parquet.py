#!/usr/bin/env python3
"""Small Parquet files of several writers, and what pyarrow reads from each, one record a line: of
NAME.KIND.parquet what is in KIND.jsonl, of NAME.zero.parquet nothing.

Usage: make_parquet.py    (needs pyarrow, pandas, polars and duckdb; writes into tests/golden/parquet)
"""
import json
import os
import pathlib

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).parent / "parquet"
N = 40

TEXTS = [f"shared {i // 9} beginning, Über die 雪 №{i} 🐐" + "\n\"x\\y\"" * (i % 3) for i in range(N)]
TEXTS[7] = ""
MESSAGES = [
    [{"role": ("user", "assistant")[j % 2], "content": None if (i + j) % 13 == 0 else TEXTS[i - j]}
     for j in range(i % 4)]
    for i in range(N)
]
IDS = [[(i * 37 + j * 11) % 1500 for j in range(i % 6)] for i in range(N)]
MESSAGE_LIST = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
PARTS = [
    [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "yo"}],
      "tool_calls": None}],
    [],
    [{"role": "assistant", "content": [], "tool_calls": [{"id": "1", "n": [1, 2], "ok": True, "p": 0.5}]}],
]

ZERO = pa.table({"text": pa.array([], pa.string())})
TEXT = pa.table({"id": list(range(N)), "text": TEXTS, "flag": [i % 3 == 0 for i in range(N)]})
CHAT = pa.table({"messages": pa.array(MESSAGES, type=MESSAGE_LIST), "id": list(range(N))})
TOKENS = pa.table({"input_ids": pa.array(IDS, type=pa.list_(pa.int32()))})


def arrow(name, table, **options):
    pq.write_table(table, OUT / f"{name}.parquet", **options)


def write_all():
    for packing in ("none", "snappy", "gzip", "zstd"):
        version = "2.0" if packing in ("snappy", "zstd") else "1.0"
        arrow(f"arrow-{packing}", TEXT, compression=packing, data_page_version=version, row_group_size=25,
              data_page_size=256, write_page_checksum=packing == "none")
        arrow(f"arrow-chat-{packing}", CHAT, compression=packing, data_page_version=version,
              use_dictionary=packing == "gzip", data_page_size=300, row_group_size=25)
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"):
        arrow(f"arrow-{encoding.lower().replace('_', '-')}", TEXT.select(["text"]), use_dictionary=False,
              column_encoding={"text": encoding}, compression="none", data_page_size=400)
    arrow("arrow-ids-delta", TOKENS, use_dictionary=False, column_encoding={"input_ids.list.element": "DELTA_BINARY_PACKED"})
    arrow("arrow-old-lists", CHAT, use_compliant_nested_type=False, version="1.0")
    arrow("arrow-parts", pa.table({"messages": PARTS}))
    write_groups_without_rows()
    pandas.DataFrame({"text": TEXTS}).to_parquet(OUT / "pandas.parquet")
    polars.DataFrame({"messages": MESSAGES}).write_parquet(OUT / "polars-zstd.parquet", data_page_size=300)
    duck = duckdb.connect()
    duck.register("chat", CHAT)
    duck.register("texts", TEXT)
    for version in ("V1", "V2"):
        for name, packing in (("chat", "snappy"), ("texts", "zstd")):
            path = OUT / f"duckdb-{name}-{version.lower()}.parquet"
            duck.execute(f"COPY {name} TO '{path}' (FORMAT parquet, COMPRESSION {packing}, PARQUET_VERSION {version})")


def write_groups_without_rows():
    for name, sizes in (("arrow-zero", [0]), ("arrow-zeros", [0, 0]), ("arrow-zero-groups", [0, 13, 0, 0, 27, 0])):
        with pq.ParquetWriter(OUT / f"{name}.parquet", ZERO.schema) as writer:
            begin = 0
            for size in sizes:
                writer.write_table(TEXT.select(["text"]).slice(begin, size))
                begin += size


def write_refused():
    refused = OUT / "refused"
    refused.mkdir(exist_ok=True)
    for packing in ("brotli", "lz4"):
        pq.write_table(pa.table({"text": ["one"]}), refused / f"{packing}.parquet", compression=packing)
    pq.write_table(pa.table({"text": pa.array([b"\xff", b"x"], pa.binary())}), refused / "binary.parquet")
    pq.write_table(pa.table({"text": pa.array([1, 2], pa.decimal128(5, 2))}), refused / "decimal.parquet")
    pq.write_table(pa.table({"body": ["one"], "id": [1]}), refused / "columns.parquet")


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("*.*"):
        os.remove(old)
    write_all()
    write_refused()
    for path in sorted(OUT.glob("*.parquet")):
        schema = pq.read_schema(path).names
        column = next(name for name in ("text", "messages", "input_ids") if name in schema)
        rows = pq.read_table(path, columns=[column]).to_pylist()
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        if not rows:
            path.rename(OUT / f"{path.stem}.zero.parquet")
            continue
        kind = "parts" if "parts" in path.stem else column
        expected = OUT / f"{kind}.jsonl"
        assert not expected.exists() or expected.read_text() == lines, path
        expected.write_text(lines)
        path.rename(OUT / f"{path.stem}.{kind}.parquet")


main()
