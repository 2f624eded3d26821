"""Edit distances as rapidfuzz computes them, into tests/golden/myers/.

    python3 -m venv venv && venv/bin/pip install rapidfuzz Levenshtein && venv/bin/python tests/golden/make_myers.py

A file is one JSON object: `form` (`pairs`, or `all` for every left with every right string), `left`, `right`, and `cases`, each
with a `cutoff` (or null) and `distances`, row by row, where null is a distance above the cutoff. A symbol is a code point.

    awkward   empty strings, NUL, combining characters, planes, what users of such libraries reported as wrong
    lengths   lengths around 32, 64, 128 and 256, related and not, by pairs and all with all
    words     misspelt words against words of the corpus
    names     surnames of the corpus with each other
    dna       reads of 100 to 3,000 with errors, and unrelated ones
    cjk       Han characters, kana and emoji
    cutoffs   cutoffs below, at and above the distance

Every distance is computed a second time, by another library, and small ones a third time, from the definition.
"""

import gzip
import importlib.metadata
import json
import pathlib
import random
import shutil

import Levenshtein
from rapidfuzz.distance import Levenshtein as rapidfuzz

OUT = pathlib.Path(__file__).parent / "myers"
CORPUS = pathlib.Path(__file__).parents[2] / "corpus"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def by_definition(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(diagonal + (x != y), row[j - 1] + 1, row[j] + 1)
    return row[-1]


def distance(a, b):
    d = rapidfuzz.distance(a, b)
    assert d == Levenshtein.distance(a, b), (a, b, d)
    if len(a) * len(b) <= 5_000:
        assert d == by_definition(a, b), (a, b, d)
    return d


def write(name, form, left, right, cutoffs=(None,)):
    pairs = list(zip(left, right, strict=True)) if form == "pairs" else [(a, b) for a in left for b in right]
    distances = [distance(a, b) for a, b in pairs]
    cases = []
    for cutoff in cutoffs:
        cut = [d if cutoff is None or d <= cutoff else None for d in distances]
        if cutoff is not None:
            # Above the cutoff it says one more than that.
            for (a, b), d in zip(pairs, cut):
                assert rapidfuzz.distance(a, b, score_cutoff=cutoff) == (cutoff + 1 if d is None else d), (a, b, cutoff)
        cases.append({"cutoff": cutoff, "distances": cut})
    case = {"form": form, "left": left, "right": right, "cases": cases}
    (OUT / f"{name}.json").write_text(json.dumps(case, separators=(",", ":")) + "\n", encoding="ascii")


def edited(rng, text, edits, alphabet):
    text = list(text)
    for _ in range(edits):
        kind = rng.randrange(3)
        if kind == 0 and text:
            text[rng.randrange(len(text))] = rng.choice(alphabet)
        elif kind == 1:
            text.insert(rng.randrange(len(text) + 1), rng.choice(alphabet))
        elif text:
            del text[rng.randrange(len(text))]
    return "".join(text)


def drawn(rng, length, alphabet=LETTERS):
    return "".join(rng.choices(alphabet, k=length))


AWKWARD = [
    ("", ""), ("", "AA"), ("AA", ""), ("ACGT", ""), ("", "abc"), ("a", "a"), ("a", "b"), ("kitten", "sitting"),
    ("intention", "execution"), ("saturday", "sunday"), ("warsa", "was"), ("AL NASSER", "HALA NASSER"),
    # NUL is a symbol.
    ("a\0b", "ab"), ("a\0\0", "a"), ("\0", ""), ("\0" * 40, "\0" * 70),
    # Two symbols that agree in their low bits, or in a hash.
    ("a" * 65, "a\u0100" + "a" * 63), ("\u0161" * 5, "a" * 5), ("a", "\u0161"), ("\u0100", "\u0200"), ("\u0080", "\u0080"),
    ("a", "\u00e4"), ("\u0141", "A"), ("\U00010041", "A"), ("\u00ff", "\u0100"),
    # One code point or two; emoji of one and of several.
    ("\u00e9", "e\u0301"), ("\U0001f431", ""), ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468"),
    ("\U0001f44d\U0001f3fd", "\U0001f44d"), ("\u043c", "\u0433"), ("\u0442\u044b \u043c\u0438\u043b\u0430\u044f", "\u0442\u044b \u0433\u0435\u043d\u0438\u0439"),
    ("Testing\u2710What", "Testing What"), ("\ufeffabc", "abc"), ("abc\r", "abc"), ("abc\n", "abc"),
    # Lengths of a word and one more.
    ("1234567890" * 3 + "123", "1234567890" * 3 + "123"), ("a" * 64, "a" * 63 + "b"), ("a" * 64 + "b", "b" + "a" * 64),
    ("a" * 128 + "b", "b" + "a" * 128), ("ab" * 64, "ba" * 64), ("a" * 300, "a"), ("a", "b" * 300), ("a" * 300, ""),
    ("a" * 256, "b" * 256), ("x" + "a" * 255, "a" * 255 + "x"), ("ab" * 200, "ab" * 199), ("a" * 5_000, "b" * 5_000),
    ("a" * 5_000, "a" * 4_999),
]


def lengths(rng):
    around = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257]
    strings = [drawn(rng, length, "abcd") for length in around]
    write("lengths_all", "all", strings, strings[::-1])
    left = [drawn(rng, length) for length in around for _ in range(3)]
    right = [edited(rng, text, edits, LETTERS) for text, edits in zip(left, [1, 4, 30] * len(around))]
    write("lengths_pairs", "pairs", left, right, [None, 0, 3, 20])


def corpus(name):
    with gzip.open(CORPUS / f"{name}.txt.gz", "rt", encoding="utf-8", newline="\n") as file:
        return file.read().splitlines()


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    rng = random.Random(20261204)
    write("awkward", "pairs", [a for a, _ in AWKWARD], [b for _, b in AWKWARD], [None, 0, 1, 2, 64, 4_999, 2**32 - 2])
    lengths(rng)
    words = corpus("words/american-english")
    beyond_ascii = [word for word in words if not word.isascii()]
    misspelt = [edited(rng, word, rng.randrange(4), LETTERS) for word in rng.sample(words, 30) + rng.sample(beyond_ascii, 5)]
    write("words", "all", misspelt, rng.sample(words, 150) + rng.sample(beyond_ascii, 20) + misspelt[:10], [None, 2])
    names = corpus("names/surnames")
    write("names", "all", names[:70], rng.sample(names, 70))
    dna = [drawn(rng, length, "ACGT") for length in [100, 150, 151, 229, 500, 1_000, 1_023, 1_024, 1_025, 3_000]]
    write("dna", "pairs", dna * 3 + dna,
          [edited(rng, read, round(len(read) * share), "ACGT") for share in (0.01, 0.05, 0.2) for read in dna]
          + [drawn(rng, rng.randrange(50, 1_500), "ACGT") for _ in dna], [None, 5, 60])
    han, kana = [chr(c) for c in range(0x4E00, 0x4E00 + 3_000)], [chr(c) for c in range(0x3041, 0x3097)]
    symbols = han + kana * 5 + [chr(c) for c in range(0x1F600, 0x1F640)] * 5 + ["\u200d", "\ufe0f", "\u0301"] * 20
    titles = [drawn(rng, rng.randrange(2, 40), symbols) for _ in range(40)]
    long = [drawn(rng, length, symbols) for length in (64, 65, 130, 300)]
    others = [edited(rng, rng.choice(titles), 2, symbols) for _ in range(50)]
    write("cjk", "all", titles + long, others + [edited(rng, text, 20, symbols) for text in long], [None, 3])
    left = [drawn(rng, length) for length in [5, 20, 40, 70, 150, 300] for _ in range(8)]
    right = [edited(rng, text, rng.randrange(8), LETTERS) for text in left]
    write("cutoffs", "pairs", left, right, [None, *range(9), 100])
    versions = [f"{library} {importlib.metadata.version(library)}" for library in ("rapidfuzz", "Levenshtein")]
    (OUT / "versions.txt").write_text("".join(f"{line}\n" for line in versions))


if __name__ == "__main__":
    main()
