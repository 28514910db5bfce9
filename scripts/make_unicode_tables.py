#!/usr/bin/env python3
"""Writes src/unicode/unicode_tables.cpp: what the tokenizers library knows of characters.

    pip install tokenizers==0.23.3 unicodedataplus==16.0.0.post1
    scripts/make_unicode_tables.py

Token ids depend on the version of Unicode, and parts of the library have different ones: its patterns 16, upper and
lower case 17, normal forms 12, accents and punctuation an older one. So the library itself is asked about every code
point. Only scripts, decompositions and combining classes come from Unicode 16 by unicodedataplus, and are held to what
the library does.
"""

import pathlib
import platform

import tokenizers
import unicodedataplus as unicode
from tokenizers import Regex, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).parent.parent / "src/unicode/unicode_tables.cpp"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co").split()
HANGUL = range(0xAC00, 0xD7A4)


def matched(regex: str) -> set[int]:
    """The code points that the library's patterns match."""
    split = pre_tokenizers.Split(Regex(f"[^{regex}]+"), "removed")
    found: set[int] = set()
    for i in range(0, len(POINTS), 4096):
        text = "".join(map(chr, POINTS[i : i + 4096]))
        for piece, _ in split.pre_tokenize_str(text):
            found.update(map(ord, piece))
    return found


def cuts(pre_tokenizer, c: int) -> bool:
    return len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a")) != 1


def runs(value_of) -> list[int]:
    """first << 8 | value of every run of code points of one value."""
    made = []
    for c in range(0x110000):
        value = value_of(c)
        if not made or made[-1] & 0xFF != value:
            made.append(c << 8 | value)
    return made


def set_runs(points: set[int]) -> list[int]:
    return runs(lambda c: int(c in points))


def categories() -> list[int]:
    category = dict.fromkeys(range(0x110000), 0)
    category.update(dict.fromkeys(range(0xD800, 0xE000), CATEGORIES.index("Cs")))
    for i, name in enumerate(CATEGORIES):
        if name not in ("Cn", "Cs"):
            category.update(dict.fromkeys(matched(r"\p{%s}" % name), i))
    for c in POINTS:
        assert CATEGORIES[category[c]] == unicode.category(chr(c)), hex(c)
    return runs(category.get)


def scripts() -> tuple[list[str], list[int]]:
    """Their names, and of every code point the place of its script among them."""
    names = sorted({unicode.script(chr(c)) for c in POINTS})
    for name in ("Han", "Latin", "Cyrillic", "Thai", "Common"):
        assert matched(r"\p{%s}" % name) == {c for c in POINTS if unicode.script(chr(c)) == name}, name
    return names, runs(lambda c: names.index(unicode.script(chr(c))))


def lower_cases() -> list[tuple[int, int, int, int]]:
    """(first, last, step, what to add) of every row of characters."""
    lowercase = normalizers.Lowercase()
    rows: list[list[int]] = []
    for c in POINTS:
        lower = lowercase.normalize_str(chr(c))
        if lower == chr(c):
            continue
        if len(lower) > 1:
            assert c == 0x130 and lower == "i\u0307"
            continue
        delta = ord(lower) - c
        if rows and rows[-1][3] == delta and c - rows[-1][1] <= 2:
            row = rows[-1]
            if row[0] == row[1]:
                row[2] = c - row[1]
            if c - row[1] == row[2]:
                row[1] = c
                continue
        rows.append([c, c, 1, delta])
    return [tuple(row) for row in rows]


def decomposition(c: int) -> tuple[bool, list[int]] | None:
    """Whether it is of compatibility alone, and what it is made of, one step down, where the library knows it."""
    text = unicode.decomposition(chr(c))
    if not text or c in HANGUL:
        return None
    compatible = text.startswith("<")
    form = normalizers.NFKD() if compatible else normalizers.NFD()
    if form.normalize_str(chr(c)) == chr(c):
        return None
    return compatible, [int(part, 16) for part in text.split() if not part.startswith("<")]


def decompositions() -> list[list[int]]:
    nfc = normalizers.NFC()
    rows = []
    for c in POINTS:
        if made_of := decomposition(c):
            compatible, parts = made_of
            composes = not compatible and len(parts) == 2 and nfc.normalize_str(chr(c)) == chr(c)
            rows.append([c | compatible << 21 | composes << 22 | len(parts) << 24, *parts])
    return rows


def combining_classes() -> list[int]:
    """Where the library does not know a mark, it does not sort it either."""
    nfd = normalizers.NFD()
    old = [c for c in reversed(POINTS) if unicode.combining(chr(c)) and float(unicode.age(chr(c))) < 9]
    marks = {unicode.combining(chr(c)): chr(c) for c in old}
    known = {}
    for c in POINTS:
        value = unicode.combining(chr(c))
        if not value or decomposition(c):
            continue
        lower = [m for v, m in marks.items() if v < value]
        higher = [m for v, m in marks.items() if v > value]
        sorts = [nfd.normalize_str("a" + chr(c) + m) == "a" + m + chr(c) for m in lower]
        sorts += [nfd.normalize_str("a" + m + chr(c)) == "a" + chr(c) + m for m in higher]
        assert all(sorts) or not any(sorts), hex(c)
        if all(sorts):
            known[c] = value
    return runs(lambda c: known.get(c, 0))


def numbers(values) -> str:
    lines, line = [], " "
    for value in values:
        text = f" {value:#x},"
        if len(line) + len(text) > 99:
            lines.append(line)
            line = " "
        line += text
    return "\n".join([*lines, line]) + "\n"


def main() -> None:
    names, script_runs = scripts()
    punctuation, digits = pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Digits(True)
    no_accents = normalizers.StripAccents()
    rows = decompositions()
    tables = [
        ("kCategoryRuns", categories()),
        ("kScriptRuns", script_runs),
        ("kAlphabeticRuns", set_runs(matched(r"\p{Alphabetic}"))),
        ("kNumericRuns", set_runs({c for c in POINTS if cuts(digits, c)})),
        ("kPunctuationRuns", set_runs({c for c in POINTS if cuts(punctuation, c)})),
        ("kMarkRuns", set_runs({c for c in POINTS if not no_accents.normalize_str(chr(c))})),
        ("kCombiningClassRuns", combining_classes()),
    ]
    out = [
        "// Made by scripts/make_unicode_tables.py: see there and unicode_tables.h.\n",
        f"// tokenizers {tokenizers.__version__}, Unicode {unicode.unidata_version}.\n",
        '#include "unicode/unicode_tables.h"\n\nnamespace fp8kv::unicode {\nnamespace {\n\n// clang-format off\n',
    ]
    for name, values in tables:
        out.append(f"constexpr uint32_t {name}Data[] = {{\n{numbers(values)}}};\n")
    out.append(f"constexpr uint32_t kDecompositionsData[] = {{\n{numbers(v for row in rows for v in row)}}};\n")
    lower = "".join(f"  {{{a:#x}, {b:#x}, {step}, {delta}}},\n" for a, b, step, delta in lower_cases())
    out.append(f"constexpr LowerRow kLowerData[] = {{\n{lower}}};\n")
    short = {name: alias for alias, name in unicode.property_value_by_alias["script"].items()}
    quoted = "".join(f'  {{"{name}", "{short[name]}"}},\n' for name in names)
    out.append(f"constexpr ScriptName kScriptData[] = {{\n{quoted}}};\n// clang-format on\n\n}}  // namespace\n\n")
    for name, _ in tables:
        out.append(f"const std::span<const uint32_t> {name} = {name}Data;\n")
    out.append("const std::span<const uint32_t> kDecompositions = kDecompositionsData;\n")
    out.append("const std::span<const LowerRow> kLowerRows = kLowerData;\n")
    out.append("const std::span<const ScriptName> kScriptNames = kScriptData;\n")
    out.append("\n}  // namespace fp8kv::unicode\n")
    OUT.write_text("".join(out))
    print(f"{OUT}: {OUT.stat().st_size} bytes, by tokenizers {tokenizers.__version__}, python {platform.python_version()}")


if __name__ == "__main__":
    main()
