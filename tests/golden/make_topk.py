"""Makes the files in tests/golden/topk: inputs as numpy and others write them, and answers computed another way.

    pip install numpy zstandard
    python tests/golden/make_topk.py

The Rust tests read the files and need no Python. All matrices named m_* hold the same 37 x 7 values, which f16 holds
exactly; matrix.csv is their plain text. Answers are sums by math.fsum, which rounds once.
"""

import gzip
import json
import math
import pathlib
import struct
import sys

import numpy as np
import zstandard

HERE = pathlib.Path(__file__).parent / "topk"
HERE.mkdir(exist_ok=True)
rng = np.random.default_rng(20)


def save(name, array, version=(1, 0)):
    with open(HERE / name, "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=True)


# Matrices in every layout.
m = (rng.integers(-2000, 2000, size=(37, 7)) / 16).astype("f4")
assert (m.astype("f2").astype("f4") == m).all()
for dtype in ["<f4", ">f4", "<f2", ">f2", "<f8", ">f8"]:
    word = {"<": "le", ">": "be"}[dtype[0]] + "_" + dtype[1:]
    save(f"m_c_{word}.npy", m.astype(dtype))
    save(f"m_fortran_{word}.npy", np.asfortranarray(m.astype(dtype)))
save("m_version2.npy", m, (2, 0))
save("m_version3.npy", m, (3, 0))
lines = [",".join(repr(float(x)) for x in row) for row in m]
(HERE / "m_matrix.csv").write_text("\n".join(lines) + "\n")
header = ",".join(f"c{i}" for i in range(7))
quoted = ["\ufeff" + header] + [",".join(f'"{x}"' for x in line.split(",")) for line in lines]
(HERE / "m_windows.csv").write_bytes("\r\n".join(quoted).encode())
(HERE / "m_pandas.csv").write_text("\n".join(["0,1,2,3,4,5,6"] + lines) + "\n")
(HERE / "m_tabs.tsv").write_text("\n".join(line.replace(",", " \t ") for line in lines))
text = ("\n".join(lines) + "\n").encode()
(HERE / "m_two_members.csv.gz").write_bytes(gzip.compress(text[:500], mtime=0) + gzip.compress(text[500:], mtime=0))
skippable = struct.pack("<II", 0x184D2A53, 3) + b"abc"
zstd = zstandard.ZstdCompressor(write_checksum=True)
(HERE / "m_frames.csv.zst").write_bytes(zstd.compress(text[:700]) + skippable + zstd.compress(text[700:]))
(HERE / "m_records.fvecs").write_bytes(b"".join(struct.pack("<i7f", 7, *row) for row in m))

# Bytes: one matrix per type.
u = rng.integers(0, 256, size=(11, 5)).astype("u1")
save("u_c.npy", u)
(HERE / "u_records.bvecs").write_bytes(b"".join(struct.pack("<i5B", 5, *row) for row in u))
(HERE / "u_matrix.csv").write_text("\n".join(",".join(map(str, row)) for row in u) + "\n")
i = rng.integers(-128, 128, size=(11, 5)).astype("i1")
save("i_fortran.npy", np.asfortranarray(i))
(HERE / "i_matrix.csv").write_text("\n".join(",".join(map(str, row)) for row in i) + "\n")

# What numpy writes that is no matrix of numbers.
save("bad_object.npy", np.array([[1, None], ["a", 2.0]], dtype=object))
save("bad_complex.npy", m.astype("c8"))
save("bad_int64.npy", m.astype("i8"))
save("bad_bool.npy", m > 0)
save("bad_string.npy", np.array([["a", "b"]]))
save("bad_time.npy", np.array([["2020-01-01"]], dtype="M8[D]"))
save("bad_longdouble.npy", m.astype("g"))
save("bad_structured.npy", np.zeros((3, 2), dtype=[("x", "<f4"), ("y", "<f4")]))
save("bad_structured_names.npy", np.zeros((3, 2), dtype=[("h\u00f6he", "<f4")]), (3, 0))
save("bad_scalar.npy", np.float32(1))
save("bad_1d.npy", m[0])
save("bad_3d.npy", m.reshape(37, 7, 1))
save("empty_rows.npy", m[:0])

# A search: duplicates (ties), a zero row, a zero query, and as many queries as one SIMD vector has not.
corpus = rng.standard_normal((150, 13)).astype("f4")
corpus[40] = corpus[3]
corpus[90] = corpus[3]
corpus[141] = 2 * corpus[3]
corpus[77] = 0
queries = rng.standard_normal((9, 13)).astype("f4")
queries[1] = corpus[3]
queries[5] = 0
save("corpus.npy", corpus)
save("queries.npy", queries)


def dot(a, b):
    return math.fsum(float(x) * float(y) for x, y in zip(a, b))


def score(metric, q, x):
    if metric == "dot":
        return dot(q, x)
    if metric == "l2":
        return math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(q, x)))
    norms = math.sqrt(dot(q, q)) * math.sqrt(dot(x, x))
    return dot(q, x) / norms if norms else 0.0


for metric in ["cosine", "dot", "l2"]:
    out = [f"query,rank,row,{metric}"]
    for number, q in enumerate(queries):
        sign = 1 if metric == "l2" else -1
        # Rounded to 12 digits, so that equal rows of another length tie, as they do by definition.
        scored = sorted((sign * round(score(metric, q, x), 12), row) for row, x in enumerate(corpus))
        for rank, (value, row) in enumerate(scored[:25]):
            out.append(f"{number},{rank + 1},{row},{np.float32(sign * value)}")
    (HERE / f"neighbors_{metric}.csv").write_text("\n".join(out) + "\n")

(HERE / "versions.json").write_text(
    json.dumps({"python": sys.version.split()[0], "numpy": np.__version__, "zstandard": zstandard.__version__}) + "\n"
)
