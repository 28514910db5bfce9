"""Writes tokenizer-cases.json: small tokenizer.json files and what the tokenizers library makes of some texts.

    python make_tokenizer_vectors.py

The file: `made_by`, `texts` (shared by all cases), and `cases`, each with
    name       what is special about it
    tokenizer  the whole content of a tokenizer.json
    texts      texts for this case alone; they follow the shared ones
    expected   one row per text: [ids, ids_special, decoded, decoded_skip]; ids without and ids_special with special
               tokens added, both decodings of ids_special, keeping and skipping special tokens. ids_special is null
               where it equals ids, decoded_skip is null where it equals decoded.

The vocabularies are trained here, on a text written for this project, with the library's own BPE trainer; to those of
bytes some merges are appended that show where a pattern cuts, and those of the split cases are written by hand.
"""

import json
import pathlib
import platform

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = """The old clock in the tower strikes ten, and the town wakes slowly. Bread is baking in the small street.
A child runs to the river with a paper boat; the boat turns twice and sails under the bridge. It's Monday, isn't it?
They'll open the market at 10:30, and we've sold 125 apples, 48 pears and 2026 plums since 1999. He said: "I'm here!"
Café crème, naïve fiancé, Straße, señor, œuvre. Привет, мир. 你好，世界。 日本語のテキスト。 Ελλάδα. שלום.
The river runs to the sea, the sea to the sky, and the rain runs down the tower to the river again.
def turn(boat, n=2):
    return [boat] * n  # twice
"""

TEXTS = [
    "",
    " ",
    "The old clock in the tower.",
    "  two  leading,   runs \t and\n\n newlines\r\n  ",
    "It's 10:30; they'LL pay 12345.67, isn't IT?",
    "Café naïve cafe\u0301 e\u0301\u0323 Å \u212b",
    "你好，世界。日本語 한국어",
    "👩‍👩‍👧 👍🏽 🇬🇧",
    "\x00\x01\x7f\u200b\ufeff\u00a0x\u3000y\u2028z",
    "ﬁne ½ ① Ⅷ ｆｕｌｌ ٣٤ ²",
    "x=[1,2];\tреку שלום",
    "river<s>river</s> <|end|>boat",
]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPACE = "\u2581"


# Merges added to byte-level models. A pattern that cuts elsewhere (digits, line ends, apostrophes,
# marks) then gives other ids.
TELLING_MERGES = [("1", "2"), ("12", "3"), ("123", "4"), ("4", "5"), ("6", "7"), ("2", "2"), ("3", "3"), ("33", "3"),
                  ("Ġ", "Ġ"), ("Ċ", "Ċ"), ("č", "Ċ"), ("Ġ", "Ċ"), (".", "Ċ"), ("'", "L"), ("'L", "L"), ("n", "'"),
                  ("'", "T"), ("Ì", "ģ"), ("e", "Ìģ"), ("=", "["), ("x", "="), ("Ġ", "|"), ("?", "Ġ")]


def append_merges(content):
    vocab = content["model"]["vocab"]
    for left, right in TELLING_MERGES:
        if [left, right] not in content["model"]["merges"]:
            content["model"]["merges"].append([left, right])
            vocab.setdefault(left + right, max(vocab.values()) + 1)


def train(tokenizer, size, special=(), alphabet=()):
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=list(special),
                                  initial_alphabet=list(alphabet), show_progress=False)
    tokenizer.train_from_iterator([CORPUS], trainer)
    return tokenizer


def byte_level(size=300, pattern=None, normalizer=None, prefix_space=False, special=("<s>", "</s>")):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=pattern is None)
    split = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(split + [last]) if split else last
    tokenizer.decoder = decoders.ByteLevel()
    return edited(train(tokenizer, size, special, pre_tokenizers.ByteLevel.alphabet()), append_merges)[0]


def sentencepiece(size=150, byte_pieces=True, fuse_unk=True, pre_tokenizer=None, special=("<unk>", "<s>", "</s>")):
    """As converted Llama 2 checkpoints are; with a pre-tokenizer, that makes the spaces instead of the normalizer."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=byte_pieces))
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
        # Trained by words, but used without a pre-tokenizer. So no merge crosses a word, like in
        # real models.
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(SPACE + "[^" + SPACE + "]*"), "isolated")
    train(tokenizer, size, special)
    content = json.loads(tokenizer.to_str())
    if not pre_tokenizer:
        content["pre_tokenizer"] = None
    if byte_pieces:
        vocab, merges = {s: i for i, s in enumerate(special)}, content["model"]["merges"]
        for byte in range(256):
            vocab[f"<0x{byte:02X}>"] = len(vocab)
        ascii_only = [p for p in content["model"]["vocab"] if p not in vocab and (p[0] < "\x7f" or p[0] == SPACE)]
        kept = [p for p in ascii_only if all(c < "\x7f" or c == SPACE for c in p)]
        vocab.update({p: len(vocab) + i for i, p in enumerate(kept)})
        content["model"]["vocab"] = vocab
        content["model"]["merges"] = [m for m in merges if m[0] in vocab and m[1] in vocab and m[0] + m[1] in vocab]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    if pre_tokenizer and not byte_pieces:
        tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=pre_tokenizer.prepend_scheme)
    else:
        tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
    return tokenizer


def template(tokenizer, single, pair=None):
    ids = [(t, tokenizer.token_to_id(t)) for t in ("<s>", "</s>") if t in single]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair or single + " " + single.replace("$A", "$B"), special_tokens=ids)
    return tokenizer


def edited(tokenizer, edit):
    content = json.loads(tokenizer.to_str())
    edit(content)
    return Tokenizer.from_str(json.dumps(content)), content


def split_case(pattern, behaviour, invert=False):
    """Merges join "-" to both sides, so that the ids show the cuts."""
    pieces = ["<unk>", *"abcdehinortuvw -", "--", "a-", "-b", "b-", "-c", "a ", " -", "- ", " b", "th", "the"]
    merges = [("-", "-"), ("a", "-"), ("-", "b"), ("b", "-"), ("-", "c"), ("a", " "), (" ", "-"), ("-", " "), (" ", "b"),
              ("t", "h"), ("th", "e")]
    tokenizer = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(pattern, behaviour, invert)
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


def digits_case(individual):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=individual),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return edited(train(tokenizer, 280, ["<s>", "</s>"], pre_tokenizers.ByteLevel.alphabet()), append_merges)[0]


def drop_merges(content):
    """Leaves pieces in the vocabulary that no merge makes: only ignore_merges finds them."""
    gone = [" river", " clock", " tower"]
    spelled = {g.replace(" ", "Ġ") for g in gone}
    content["model"]["merges"] = [m for m in content["model"]["merges"] if m[0] + m[1] not in spelled]
    for piece in sorted(spelled):
        content["model"]["vocab"].setdefault(piece, len(content["model"]["vocab"]))


def set_ignore_merges(value):
    def edit(content):
        drop_merges(content)
        content["model"]["ignore_merges"] = value
    return edit


def merges_as_strings(content):
    content["model"]["merges"] = [" ".join(m) for m in content["model"]["merges"]]


def with_added_tokens(tokenizer):
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    tokenizer.add_tokens([
        AddedToken("<l>", lstrip=True, normalized=False),
        AddedToken("<r>", rstrip=True, normalized=False),
        AddedToken("<b>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("fine", normalized=True),
        AddedToken("<|end|>s", normalized=False),
        AddedToken("  ", normalized=False),
    ])
    return tokenizer


ADDED_TEXTS = ["a <l> b<l>c  <l>", "a <r> b<r>c<r>  ", " <b> <b>  x <b>", "word words a-word sword word, word_ éword word",
               "fine ﬁne ｗｏｒｄ ｆｉne", "<|end|><|end|>s<|end", "a  b   c    d", "<s><s></s>x<|end|> y"]
SPLIT_TEXTS = ["a-b--c", "-a-", "--", "the-b--the---c", "a - b", "a b-<s>-b"]


def cases():
    """Yields name, tokenizer (or a pair of it and its content, where that must be kept as edited), own texts."""
    yield "gpt2: byte-level with its own pattern", byte_level(), []
    yield "byte-level: a prefix space is added", byte_level(prefix_space=True), ["<s>x y"]
    yield "llama3: split, byte-level, BOS by a template", template(byte_level(pattern=LLAMA3), "<s> $A"), []
    yield "llama3: ignore_merges takes whole words", edited(byte_level(pattern=LLAMA3), set_ignore_merges(True)), [
        "the river tower clock rivers"]
    yield "llama3: without ignore_merges they are built", edited(byte_level(pattern=LLAMA3), set_ignore_merges(False)), [
        "the river tower clock rivers"]
    yield "qwen2: NFC, single digits", with_added_tokens(
        byte_level(pattern=QWEN2, normalizer=normalizers.NFC())), ["<|end|>\nriver<|end|>"]
    yield "gpt2: the pattern given to Split", byte_level(pattern=GPT2), []
    yield "added tokens: lstrip, rstrip, single_word, normalized", with_added_tokens(
        byte_level(normalizer=normalizers.NFKC())), ADDED_TEXTS
    yield "template: BOS and EOS", template(byte_level(size=280), "<s> $A </s>"), ["<s>already</s>"]
    yield "merges: pairs", byte_level(size=290), []
    yield "merges: strings", edited(byte_level(size=290), merges_as_strings), []
    yield "sentencepiece: byte fallback, BOS", template(sentencepiece(), "<s> $A"), ["<s>the river", " the river", "▁"]
    yield "sentencepiece: added tokens", template(with_added_tokens(sentencepiece()), "<s> $A"), ADDED_TEXTS
    yield "no byte pieces: unknowns are fused", sentencepiece(byte_pieces=False, size=110), ["ЖЖ Ж日river"]
    yield "no byte pieces: each unknown by itself", sentencepiece(byte_pieces=False, fuse_unk=False, size=110), [
        "ЖЖ Ж日river"]
    for scheme in ("always", "first", "never"):
        pre = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=True)
        yield f"metaspace: {scheme}", sentencepiece(pre_tokenizer=pre, byte_pieces=False, size=130), [
            "<s>the river</s> the boat", " the", "▁the"]
    pre = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="first", split=False)
    yield "metaspace: first, not split, byte fallback", sentencepiece(pre_tokenizer=pre), ["<s>the river</s> the boat"]
    yield "normalizer: NFKC", byte_level(size=280, normalizer=normalizers.NFKC()), ["Ａ\u0301 ﷺ ㍿ ǆ"]
    yield "normalizer: NFC", byte_level(size=280, normalizer=normalizers.NFC()), [
        "A\u030a\u0323 \u1112\u1161\u11ab q\u0307\u0323 \u0344 \u2126 \ufb1d"]
    yield "digits: one by one", digits_case(True), ["a1b22c333 ½٣"]
    yield "digits: in runs", digits_case(False), ["a1b22c333 ½٣"]
    for behaviour in ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"split: {behaviour}", split_case("-", behaviour), SPLIT_TEXTS
    yield "split: a pattern, inverted, removed", split_case(Regex(r"\p{L}+"), "removed", invert=True), SPLIT_TEXTS
    yield "split: a pattern, isolated", split_case(Regex(r"\s+|\p{P}"), "isolated"), SPLIT_TEXTS


def expected_row(tokenizer, text):
    plain = tokenizer.encode(text, add_special_tokens=False).ids
    special = tokenizer.encode(text, add_special_tokens=True).ids
    decoded = tokenizer.decode(special, skip_special_tokens=False)
    skipped = tokenizer.decode(special, skip_special_tokens=True)
    return [plain, None if special == plain else special, decoded, None if skipped == decoded else skipped]


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main():
    rows = []
    for name, made, own in cases():
        tokenizer, content = made if isinstance(made, tuple) else (made, json.loads(made.to_str()))
        assert len(compact(content).encode()) < 15_000, name
        expected = [expected_row(tokenizer, t) for t in TEXTS + own]
        body = ",\n".join(compact(row) for row in expected)
        rows.append(f'{{"name":{compact(name)},\n"tokenizer":{compact(content)},\n"texts":{compact(own)},\n'
                    f'"expected":[\n{body}]}}')
    made_by = {"python": platform.python_version(), "tokenizers": tokenizers.__version__}
    out = f'{{"made_by":{compact(made_by)},\n"texts":{compact(TEXTS)},\n"cases":[\n' + ",\n".join(rows) + "\n]}\n"
    json.loads(out)
    path = pathlib.Path(__file__).resolve().parent / "tokenizer-cases.json"
    path.write_text(out, encoding="utf-8")
    print(f"{len(rows)} cases, {len(out.encode())} bytes")


if __name__ == "__main__":
    main()
