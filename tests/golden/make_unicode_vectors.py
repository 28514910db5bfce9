"""Writes unicode-digests.json: what the tokenizers library knows of all characters, as SHA-256 digests.

    python make_unicode_vectors.py

The file: `made_by`; `classes`: for sets of characters, as a pattern has them between brackets, the digest of a "0" or "1"
for each code point; `properties`: the same for what other parts of the library ask; `changes`: for normal forms and lower
case, the digest of what each code point alone becomes, a line each; `pieces` and `joined`: the same for every text of three
of the pieces, in order. Code points are those from 0 to 10FFFF without surrogates.
"""

import hashlib
import itertools
import json
import pathlib
import platform

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CLASSES = (
    [rf"\p{{{name}}}" for name in
     "L M N P S Z C Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Po Sc So Cn Cf Han Latin Cyrillic Hangul thai Kana Kawi Alphabetic".split()]
    + [r"\P{L}", r"\P{Mn}", r"\p{^N}", r"\w", r"\d", r"\D", r"\s", r"\S", r"\p{L}\p{M}", r"^\s\p{L}\p{N}", r"^\r\n\p{L}\p{N}",
       r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"])
FORMS = {"NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD()}
PIECES = ("a e q s A \u00c5 \u00e9 \u0065\u0301 \u0300 \u0301 \u0323 \u0327 \u0345 \u0338 \u0344 \u0340 \u1100 \u1161 \u11a8 \uac00 "
          "\uac01 \u212b \ufb01 \u1e9b \u3042 \u304b \u3099 \u09c7 \u09be \u0f71 \u0f74 \u0f73 \u2126 \u1f80 \U0001d15e \u0958 "
          "\u0898 \U00011935 \U00011930 \u0cc6 \u0cc2 \u0cd5").split()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def class_bits(items: str) -> str:
    split = pre_tokenizers.Split(Regex(f"[{items}]"), "removed")
    left = set()
    for i in range(0, len(POINTS), 4096):
        for piece, _ in split.pre_tokenize_str("".join(map(chr, POINTS[i : i + 4096]))):
            left.update(piece)
    return "".join("0" if chr(c) in left else "1" for c in POINTS)


def main() -> None:
    def cuts(pre_tokenizer):
        return lambda c: len(pre_tokenizer.pre_tokenize_str(f"a{chr(c)}a")) != 1

    no_accents, words = normalizers.StripAccents(), pre_tokenizers.Whitespace()
    properties = {
        "numeric": cuts(pre_tokenizers.Digits(True)),
        "punctuation": cuts(pre_tokenizers.Punctuation("isolated")),
        "white_space": cuts(pre_tokenizers.WhitespaceSplit()),
        "word": lambda c: len(words.pre_tokenize_str(f"a{chr(c)}a")) == 1,
        "mark": lambda c: no_accents.normalize_str(chr(c)) == "",
    }
    changes = {**FORMS, "Lowercase": normalizers.Lowercase()}
    content = {
        "made_by": {"tokenizers": tokenizers.__version__, "python": platform.python_version()},
        "classes": {items: digest(class_bits(items)) for items in CLASSES},
        "properties": {
            name: digest("".join("1" if has(c) else "0" for c in POINTS)) for name, has in properties.items()
        },
        "changes": {
            name: digest("".join(change.normalize_str(chr(c)) + "\n" for c in POINTS)) for name, change in changes.items()
        },
        "pieces": PIECES,
        "joined": {
            name: digest("".join(form.normalize_str("".join(text)) + "\n" for text in itertools.product(PIECES, repeat=3)))
            for name, form in FORMS.items()
        },
    }
    out = pathlib.Path(__file__).parent / "unicode-digests.json"
    out.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
