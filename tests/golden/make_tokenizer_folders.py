"""Writes tokenizer-folders.json: small tokenizers as files of a folder, and what other packages make of some texts.

    python make_tokenizer_folders.py

SentencePiece's tokenizer.model (by the package sentencepiece), vocab.json with merges.txt (by transformers) and
tokenizer.json of the kind Unigram (by tokenizers). The file: `made_by`, `texts` (shared by all cases), and `cases`, each with
    name      what is special about it
    files     name to content; that of a tokenizer.model is in hexadecimal digits
    texts     texts for this case alone; they follow the shared ones
    expected  one row per text: [ids, ids_special, decoded, decoded_skip], as in tokenizer-cases.json; `decoded` is null
              for a tokenizer.model, since sentencepiece shows no control symbols
All are trained here, on a text written for this project.
"""

import io
import json
import pathlib
import tempfile

import sentencepiece
import tokenizers
import transformers
from sentencepiece import sentencepiece_model_pb2 as pb
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from make_tokenizer_vectors import CORPUS, SPACE, TEXTS, compact

LINES = CORPUS.splitlines()
OWN = ["the  river<sep>the boat ", "<sep><sep> river", SPACE + "river", "\x00\x01", "a" * 40, "ﬁne ＡＢ \u00a0x\u3000y", "日本 日本語", "<0x41>\n\n",
       "   ", "naïve" * 5]

# Small rules instead of nmt_nfkc's 240 kB: some characters become others, a space, several, or
# nothing.
RULES = "\n".join(["FB01\t66 69", "A0\t20", "3000\t20", "9\t20", "A\t20", "FF21\t41", "FF22\t42", "65 301\tE9", "1\t", "BD\t31 2F 32", "2028\t20 20"])


def train(folder, **options):
    out = io.BytesIO()
    rules = pathlib.Path(folder) / "rules.tsv"
    rules.write_text(RULES, encoding="utf-8")
    if options.pop("rules", False):
        options["normalization_rule_tsv"] = str(rules)
    else:
        options["normalization_rule_name"] = "identity"
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=out, minloglevel=2, num_threads=1,
                                             hard_vocab_limit=False, **options)
    proto = pb.ModelProto()
    proto.ParseFromString(out.getvalue())
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    return proto


def without_letters(proto):
    kept = [p for p in proto.pieces if p.type != 1 or p.piece not in "aet"]
    del proto.pieces[:]
    proto.pieces.extend(kept)


def level_scores(proto):
    for piece in proto.pieces[150:]:
        piece.score = 0.0 if piece.type == 1 else piece.score


def unused(proto):
    for piece in proto.pieces:
        if piece.type == 1 and len(piece.piece) == 3:
            piece.type = 5


def piece_cases(folder):
    plain = dict(remove_extra_whitespaces=False, byte_fallback=True)
    symbols = ["<sep>", SPACE + SPACE, "\n\n", "日本"]
    bpe, unigram = dict(model_type="bpe", vocab_size=420), dict(model_type="unigram", vocab_size=420)
    yield "BPE as in Llama", train(folder, **bpe, **plain)
    yield "BPE as in Gemma: no space before, symbols", train(folder, **bpe, **plain, add_dummy_prefix=False, user_defined_symbols=symbols)
    small = dict(model_type="bpe", vocab_size=190)
    yield "BPE: rules, one space, unknown characters", train(folder, **small, rules=True, character_coverage=0.98)
    yield "BPE: spaces behind words", train(folder, **small, treat_whitespace_as_suffix=True)
    for name, edit in (("letters that are no pieces", without_letters), ("equal scores", level_scores)):
        proto = train(folder, **small, rules=True)
        edit(proto)
        yield f"BPE: {name}", proto
    yield "Unigram with bytes", train(folder, **unigram, **plain)
    small = dict(model_type="unigram", vocab_size=170)
    yield "Unigram: rules, one space, symbols", train(folder, **small, rules=True, character_coverage=0.98, user_defined_symbols=symbols)
    proto = train(folder, **small)
    unused(proto)
    yield "Unigram: unused pieces", proto


def piece_case(name, proto):
    model = proto.SerializeToString()
    oracle = sentencepiece.SentencePieceProcessor(model_proto=model)
    expected = []
    for text in TEXTS + OWN:
        ids = oracle.encode(text)
        expected.append([ids, [oracle.bos_id(), *ids], None, oracle.decode(ids)])
    return name, {"tokenizer.model": model.hex()}, OWN, expected


def rows(oracle, texts):
    made = []
    for text in texts:
        special = oracle.encode(text).ids
        made.append([oracle.encode(text, add_special_tokens=False).ids, special,
                     oracle.decode(special, skip_special_tokens=False), oracle.decode(special)])
    return made


def merges_case(name, config, folder):
    special = ["<|endoftext|>", "<s>", "</s>", "<pad>"]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=330, special_tokens=special, show_progress=False,
                                                           initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    content = json.loads(trained.to_str())["model"]
    files = {"vocab.json": json.dumps(content["vocab"], ensure_ascii=False),
             "merges.txt": "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in content["merges"]),
             "tokenizer_config.json": json.dumps(config)}
    for file, text in files.items():
        (pathlib.Path(folder) / file).write_text(text, encoding="utf-8")
    oracle = getattr(transformers, config["tokenizer_class"]).from_pretrained(folder)._tokenizer
    own = ["<|endoftext|>x</s>", "x <|end|> y", "12345"]
    return name, files, own, rows(oracle, TEXTS + own)


def unigram_case(name, normalizer, byte_pieces):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    tokenizer.train_from_iterator(LINES, trainers.UnigramTrainer(
        vocab_size=150, unk_token="<unk>", special_tokens=["<unk>", "<s>"], show_progress=False))
    content = json.loads(tokenizer.to_str())
    content["decoder"] = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    if byte_pieces:
        content["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0] for b in range(256)]
        content["model"]["byte_fallback"] = True
    content["post_processor"] = {"type": "RobertaProcessing", "sep": ["<s>", 1], "cls": ["<s>", 1], "trim_offsets": True,
                                 "add_prefix_space": True}
    text = compact(content)
    return name, {"tokenizer.json": text}, OWN, rows(Tokenizer.from_str(text), TEXTS + OWN)


def cases():
    with tempfile.TemporaryDirectory() as folder:
        for name, proto in piece_cases(folder):
            yield piece_case(name, proto)
        chat = {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {"330": {
            "content": "<|end|>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True}}}
        opt = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>",
               "pad_token": "<pad>", "add_bos_token": True}
        yield merges_case("vocab.json as in OPT", opt, folder)
        yield merges_case("vocab.json as in Qwen 2", chat, folder)
        yield merges_case("vocab.json as in GPT-NeoX, with a space before", {
            "tokenizer_class": "GPTNeoXTokenizer", "add_prefix_space": True, "pad_token": None}, folder)
    yield unigram_case("Unigram of tokenizers: NFKC", normalizers.NFKC(), False)
    yield unigram_case("Unigram of tokenizers: bytes", normalizers.NFC(), True)


def main():
    bodies = []
    for name, files, own, expected in cases():
        body = ",\n".join(compact(row) for row in expected)
        bodies.append(f'{{"name":{compact(name)},\n"files":{compact(files)},\n"texts":{compact(own)},\n"expected":[\n{body}]}}')
    made_by = {"sentencepiece": sentencepiece.__version__, "tokenizers": tokenizers.__version__,
               "transformers": transformers.__version__}
    out = f'{{"made_by":{compact(made_by)},\n"texts":{compact(TEXTS)},\n"cases":[\n' + ",\n".join(bodies) + "\n]}\n"
    json.loads(out)
    path = pathlib.Path(__file__).resolve().parent / "tokenizer-folders.json"
    path.write_text(out, encoding="utf-8")
    print(f"{len(bodies)} cases, {len(out.encode())} bytes")


if __name__ == "__main__":
    main()
