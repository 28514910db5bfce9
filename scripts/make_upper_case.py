#!/usr/bin/env python3
"""Writes src/unicode/upper_case_tables.cpp: upper and title case of every character, as this Python has them.

    scripts/make_upper_case.py
"""

import pathlib
import unicodedata

OUT = pathlib.Path(__file__).parent.parent / "src/unicode/upper_case_tables.cpp"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def rows() -> list[list[int]]:
    """[first, last, step, what to add] of every row of characters that have one upper case, which is their title case."""
    made: list[list[int]] = []
    for c in POINTS:
        upper = chr(c).upper()
        if upper == chr(c) or len(upper) > 1 or chr(c).title() != upper:
            continue
        delta = ord(upper) - c
        if made and made[-1][3] == delta and c - made[-1][1] <= 2:
            row = made[-1]
            if row[0] == row[1]:
                row[2] = c - row[1]
            if c - row[1] == row[2]:
                row[1] = c
                continue
        made.append([c, c, 1, delta])
    return made


def literal(text: str) -> str:
    return '"' + "".join(f"\\x{byte:02X}" for byte in text.encode()) + '"'


def main() -> None:
    others = [c for c in POINTS if len(chr(c).upper()) > 1 or chr(c).title() != chr(c).upper()]
    out = [
        "// Made by scripts/make_upper_case.py: see there and upper_case.h.\n",
        f"// Unicode {unicodedata.unidata_version}.\n",
        '#include "unicode/upper_case_tables.h"\n\nnamespace fp8kv::unicode {\nnamespace {\n\n// clang-format off\n',
        "constexpr LowerRow kUpperData[] = {\n",
        *(f"  {{{a:#x}, {b:#x}, {step}, {delta}}},\n" for a, b, step, delta in rows()),
        "};\nconstexpr OddCase kOddData[] = {\n",
        *(f"  {{{c:#x}, {literal(chr(c).upper())}, {literal(chr(c).title())}}},\n" for c in others),
        "};\n// clang-format on\n\n}  // namespace\n\n",
        "const std::span<const LowerRow> kUpperRows = kUpperData;\n",
        "const std::span<const OddCase> kOddCases = kOddData;\n\n}  // namespace fp8kv::unicode\n",
    ]
    OUT.write_text("".join(out))


if __name__ == "__main__":
    main()
