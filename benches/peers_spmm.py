#!/usr/bin/env python3
"""Sparse x dense beside other libraries, on operands in memory: rounds in which every engine runs once.

Setup    python3 -m venv venv && venv/bin/pip install numpy scipy mkl sparse_dot_mkl
         cargo bench --bench spmm --no-run        prints the path of the program for --lodestar
Inputs   peers_spmm.py make --dir D               seeded matrices as .npz, and B as .npy
Measure  peers_spmm.py run --dir D --lodestar target/release/deps/spmm-... --threads 2
         one JSON line per case: for each peer the median over rounds of its time over lodestar's, and the range

What is timed: one product with the result's memory there already (scipy allocates its own; it cannot do otherwise). MKL is
called on numpy's arrays through sparse_dot_mkl, as people call it. Every engine gets 0.3 s of calls to warm up and then
0.4 s that count; its time in a round is the median call. Engines sleep before their turn, so that nobody's threads still spin.
"""
import argparse, json, os, statistics, subprocess, sys, time

CASES = [  # name, rows, width, type
    ("tfidf5k", 64, "f64"), ("tfidf5k", 256, "f64"), ("tfidf50k", 64, "f64"), ("tfidf50k", 256, "f64"),
    ("stencil", 64, "f64"), ("tfidf5k", 64, "f32"), ("tfidf50k", 64, "f32"), ("stencil", 64, "f32"),
    ("tfidf5k", 1, "f64"), ("tfidf5k", 8, "f64"), ("tfidf5k", 17, "f64"), ("tfidf5k", 32, "f64"), ("tfidf5k", 100, "f64"),
    ("tfidf5k", 512, "f64"),
]


def make(folder):
    import numpy as np, scipy.sparse as sp
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(0)
    for name, rows in (("tfidf5k", 5_000), ("tfidf50k", 50_000)):
        places = random.choice(rows * 20_000, rows * 40, replace=False, shuffle=False)
        a = sp.csr_matrix((random.standard_normal(len(places)), (places // 20_000, places % 20_000)), (rows, 20_000))
        sp.save_npz(f"{folder}/{name}.f64.npz", a, compressed=False)
    line = sp.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(46, 46))
    a = sp.kron(sp.kron(line, line), line).tocsr()
    a.data = random.standard_normal(a.nnz)
    sp.save_npz(f"{folder}/stencil.f64.npz", a, compressed=False)


def case(folder, name, width, kind):
    """Files of a case, made when they are first asked for: any .npz named NAME.f64.npz will do."""
    import numpy as np, scipy.sparse as sp
    a_path, b_path = f"{folder}/{name}.{kind}.npz", f"{folder}/{name}.{width}.{kind}.npy"
    if not os.path.exists(a_path):
        sp.save_npz(a_path, sp.load_npz(f"{folder}/{name}.f64.npz").astype(np.float32), compressed=False)
    a = sp.load_npz(a_path)
    if not os.path.exists(b_path):
        np.save(b_path, np.random.default_rng(1).standard_normal((a.shape[1], width)).astype(a.dtype))
    return a_path, b_path, a, np.load(b_path)


def median_call(call):
    for seconds, times in ((0.3, None), (0.4, [])):
        start = time.perf_counter()
        while time.perf_counter() - start < seconds or (times is not None and len(times) < 5):
            begin = time.perf_counter()
            call()
            if times is not None:
                times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def run(arguments):
    threads = str(arguments.threads)
    os.environ.update(OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads, MKL_DYNAMIC="FALSE")
    libraries = [p for p in (os.path.join(sys.prefix, "lib", f"libmkl_rt.so.{v}") for v in (3, 2)) if os.path.exists(p)]
    if libraries:
        os.environ.setdefault("MKL_RT", libraries[0])
    import numpy as np, sparse_dot_mkl
    cases = [tuple(c.split(":")) for c in arguments.case] or CASES
    for name, width, kind in cases:
        width = int(width)
        a_path, b_path, a, b = case(arguments.dir, name, width, kind)
        out = np.zeros((a.shape[0], width), a.dtype)
        peers = {"mkl": lambda: sparse_dot_mkl.dot_product_mkl(a, b, out=out, out_scalar=0.0), "scipy": lambda: a @ b}
        ours, theirs = [], {peer: [] for peer in peers}
        for _ in range(arguments.rounds):
            time.sleep(0.3)
            command = [arguments.lodestar, "--a", a_path, "--b", b_path, "--threads", threads]
            ours.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1])["ms"])
            for peer, call in peers.items():
                time.sleep(0.3)
                theirs[peer].append(median_call(call))
        row = dict(matrix=name, width=width, values=kind, threads=int(threads), lodestar_ms=round(statistics.median(ours), 3))
        for peer, times in theirs.items():
            ratios = sorted(t / o for t, o in zip(times, ours))
            row[peer] = [round(x, 2) for x in (statistics.median(ratios), ratios[0], ratios[-1])]
        print(json.dumps(row), flush=True)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", choices=["make", "run"])
parser.add_argument("--dir", required=True)
parser.add_argument("--lodestar")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--case", nargs="*", default=[], help="NAME:WIDTH:f32|f64; default: those of the page")
arguments = parser.parse_args()
make(arguments.dir) if arguments.what == "make" else run(arguments)
