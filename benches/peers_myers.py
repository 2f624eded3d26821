#!/usr/bin/env python3
"""Edit distances beside other libraries, on strings in memory: rounds in which every engine runs once.

Setup    python3 -m venv venv && venv/bin/pip install numpy rapidfuzz stringzilla stringzillas-cpus edlib polyleven Levenshtein
         cargo bench --bench myers --no-run                                   prints the path of the program for --lodestar
         cargo build --release --manifest-path benches/peers_myers/Cargo.toml the program for --rust, if it is wanted
Inputs   peers_myers.py make --dir D      seeded lists, one string a line; run it from the repository, whose words it samples
Measure  peers_myers.py run --dir D --lodestar target/release/deps/myers-... --threads 2 [--rust .../peers_myers]
         one JSON line per case: for each peer the median over rounds of its time over lodestar's, and the range

What is timed: one call on lists that are in memory in the library's own form, results in memory. Every engine gets 0.3 s of
calls to warm up and then 0.4 s that count; its time in a round is the median call. A call of more than a second counts as it
is. The sums of all distances have to be equal, those above a cutoff counted as one more than it; an engine that disagrees is
named. Each turn is a process of its own that ends with it: the threads of stringzillas spin for as long as its engine
exists, and would take a core away from everybody else.

Peers: rapidfuzz (cdist and cpdist with workers), rapidfuzz_swapped (cdist the other way round, which lets it put several
strings in a register), stringzillas (has no pairs and no cutoff: it computes all), edlib, polyleven and levenshtein (called
string by string on one thread, as their users do), and with --rust the crates rust_rapidfuzz, rust_editdistancek and
rust_triple_accel. edlib and the last two take bytes: they are left out where a list is not ASCII.
"""
import argparse, gzip, json, multiprocessing, os, pathlib, random, statistics, subprocess, time

CASES = {  # name: mode, left, right, cutoff
    "a32_10k": ("one", "pattern", "a32_10k", None), "a32": ("one", "pattern", "a32", None),
    "a256_10k": ("one", "pattern", "a256_10k", None), "a256": ("one", "pattern", "a256", None),
    "b8": ("pairs", "b8_left", "b8_right", None), "b32": ("pairs", "b32_left", "b32_right", None),
    "b128": ("pairs", "b128_left", "b128_right", None), "b512": ("pairs", "b512_left", "b512_right", None),
    "c": ("all", "c_left", "c_right", None), "surnames": ("all", "surnames_left", "surnames_right", None),
    "d1000": ("pairs", "d1000_left", "d1000_right", None), "d10000": ("pairs", "d10000_left", "d10000_right", None),
    "e": ("all", "e_left", "e_right", 2), "e_uncut": ("all", "e_left", "e_right", None),
    "f": ("all", "f_left", "f_right", None),
}
PEERS = "rapidfuzz,rapidfuzz_swapped,stringzillas,edlib,polyleven,levenshtein"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make(folder, divide):
    """All lists; `divide` makes them shorter, for trying out."""
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(4)
    corpus = pathlib.Path(__file__).parent.parent / "corpus"

    def write(name, strings):
        pathlib.Path(folder, f"{name}.txt").write_text("".join(f"{s}\n" for s in strings), encoding="utf-8", newline="\n")

    def draw(length, alphabet=LETTERS):
        return "".join(rng.choices(alphabet, k=length))

    def edit(text, edits, alphabet=LETTERS):
        text = list(text)
        for _ in range(edits):
            kind, place = rng.randrange(3), rng.randrange(len(text) + 1)
            if kind == 0:
                text.insert(place, rng.choice(alphabet))
            elif place < len(text):
                text[place:place + 1] = [rng.choice(alphabet)] if kind == 1 else []
        return "".join(text)

    def lines(name):
        with gzip.open(corpus / f"{name}.txt.gz", "rt", encoding="utf-8", newline="\n") as file:
            return file.read().splitlines()

    count = lambda n: max(n // divide, 2)
    write("pattern", [draw(24)])
    for length in (32, 256):
        texts = [draw(length) for _ in range(count(200_000))]
        write(f"a{length}", texts)
        write(f"a{length}_10k", texts[:count(10_000)])
    pairs = [("b8", 8, 200_000), ("b32", 32, 100_000), ("b128", 128, 20_000), ("b512", 512, 4_000)]
    for name, length, n in pairs + [("d1000", 1_000, 400), ("d10000", 10_000, 40)]:
        alphabet, share = ("ACGT", 0.05) if name[0] == "d" else (LETTERS, 0.1)
        left = [draw(length, alphabet) for _ in range(count(n))]
        write(f"{name}_left", left)
        write(f"{name}_right", [edit(text, max(1, round(length * share)), alphabet) for text in left])
    surnames = lines("names/surnames")
    for side in ("left", "right"):
        write(f"surnames_{side}", rng.sample(surnames, count(2_000)))
        # As long as given name and surname are.
        write(f"c_{side}", [" ".join(rng.sample(surnames, 2)) for _ in range(count(2_000))])
    words = lines("words/american-english")
    write("e_left", [edit(word, rng.randrange(3)) for word in rng.sample(words, count(100))])
    write("e_right", rng.sample(words, count(50_000)))
    han, emoji = [chr(0x4E00 + i) for i in range(3_000)], [chr(0x1F600 + i) for i in range(64)]
    titles = []
    for _ in range(count(1_000)):
        title = rng.choices(han, k=rng.randrange(8, 21))
        if rng.random() < 0.5:
            title.insert(rng.randrange(len(title)), rng.choice(emoji))
        titles.append("".join(title))
    write("f_left", titles)
    write("f_right", [edit(title, 2, han) for title in rng.choices(titles, k=count(1_000))])


def read(folder, name):
    return pathlib.Path(folder, f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")


def are_ascii(*lists):
    return all(string.isascii() for strings in lists for string in strings)


def with_rapidfuzz(mode, left, right, cutoff, threads, swapped=False):
    import numpy
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein
    options = dict(scorer=Levenshtein.distance, workers=threads, dtype=numpy.int32, score_cutoff=cutoff)
    if mode == "pairs":
        return lambda: process.cpdist(left, right, **options)
    rows, columns = (right, left) if swapped else (left, right)
    return lambda: process.cdist(rows, columns, **options)


def with_stringzillas(left, right, threads):
    import stringzilla, stringzillas
    scope = stringzillas.DeviceScope(cpu_cores=threads)
    kind = stringzillas.LevenshteinDistances if are_ascii(left, right) else stringzillas.LevenshteinDistancesUTF8
    engine = kind(capabilities=scope)
    rows, columns = stringzilla.Strs(left), stringzilla.Strs(right)
    return lambda: engine(rows, columns, device=scope)


def one_by_one(function):
    def engine(mode, left, right, cutoff, threads):
        if mode == "pairs":
            return lambda: [function(a, b, cutoff) for a, b in zip(left, right)]
        return lambda: [function(a, b, cutoff) for a in left for b in right]
    return engine


def edlib_distance():
    import edlib

    def distance(a, b, cutoff):
        # It says -1 above the cutoff.
        found = edlib.align(a, b, k=-1 if cutoff is None else cutoff)["editDistance"]
        return cutoff + 1 if found < 0 else found
    return distance


def polyleven_distance():
    from polyleven import levenshtein
    return lambda a, b, cutoff: levenshtein(a, b) if cutoff is None else levenshtein(a, b, cutoff)


def levenshtein_distance():
    from Levenshtein import distance
    return lambda a, b, cutoff: distance(a, b, score_cutoff=cutoff)


def is_able(peer, mode, ascii_only):
    return (ascii_only or peer != "edlib") and (mode != "pairs" or peer not in ("rapidfuzz_swapped", "stringzillas"))


def python_engine(peer, mode, left, right, cutoff, threads):
    if peer.startswith("rapidfuzz"):
        return with_rapidfuzz(mode, left, right, cutoff, threads, swapped=peer.endswith("swapped"))
    if peer == "stringzillas":
        return with_stringzillas(left, right, threads)
    functions = dict(edlib=edlib_distance, polyleven=polyleven_distance, levenshtein=levenshtein_distance)
    return one_by_one(functions[peer]())(mode, left, right, cutoff, threads)


def timed(call, cutoff):
    """The median call in ms, and the sum of its distances."""
    import numpy
    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    times = [first]
    if first < 1:
        for seconds, times in ((0.3, None), (0.4, [])):
            start = time.perf_counter()
            while time.perf_counter() - start < seconds or (times is not None and len(times) < 3):
                begin = time.perf_counter()
                result = call()
                if times is not None:
                    times.append(time.perf_counter() - begin)
    distances = numpy.asarray(result)
    if cutoff is not None:
        distances = numpy.minimum(distances, cutoff + 1)
    return statistics.median(times) * 1e3, int(distances.sum(dtype=numpy.int64))


def in_own_process(turn):
    """What a function returns, called in a copy of this process."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(turn()))
    process.start()
    theirs.close()
    answer = ours.recv()
    process.join()
    return answer


def program(command):
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    return answer["ms"], answer["sum"]


def engines(arguments, mode, left, right, cutoff, paths):
    """The peers that can do this, by name."""
    found = {}
    ascii_only = are_ascii(left, right)
    for peer in filter(lambda peer: is_able(peer, mode, ascii_only), arguments.peers.split(",")):
        def turn(peer=peer):
            return timed(python_engine(peer, mode, left, right, cutoff, arguments.threads), cutoff)
        found[peer] = lambda turn=turn: in_own_process(turn)
    if arguments.rust:
        for peer in ("rapidfuzz", "editdistancek", "triple_accel"):
            if ascii_only or peer == "rapidfuzz":
                command = [arguments.rust, peer, mode, *paths, "none" if cutoff is None else str(cutoff), str(arguments.threads)]
                found[f"rust_{peer}"] = lambda command=command: program(command)
    return found


def run(arguments):
    for name in arguments.case or CASES:
        mode, left_name, right_name, cutoff = CASES[name]
        left, right = read(arguments.dir, left_name), read(arguments.dir, right_name)
        paths = [str(pathlib.Path(arguments.dir, f"{side}.txt")) for side in (left_name, right_name)]
        command = [arguments.lodestar, "--left", paths[0], "--right", paths[1], "--mode", mode, "--threads", str(arguments.threads)]
        command += [] if cutoff is None else ["--cutoff", str(cutoff)]
        command += ["--prepared"] if arguments.prepared else []
        peers = engines(arguments, mode, left, right, cutoff, paths)
        ours, sums, theirs, wrong = [], set(), {peer: [] for peer in peers}, set()
        for _ in range(arguments.rounds):
            time.sleep(0.3)
            ms, sum_of_ours = program(command)
            ours.append(ms)
            sums.add(sum_of_ours)
            for peer, engine in peers.items():
                time.sleep(0.3)
                ms, sum_of_peer = engine()
                theirs[peer].append(ms)
                if sum_of_peer != sum_of_ours:
                    wrong.add(peer)
        pairs = len(right) if mode != "all" else len(left) * len(right)
        ms = statistics.median(ours)
        row = dict(case=name, pairs=pairs, threads=arguments.threads, lodestar_ms=round(ms, 4), lodestar_ns_per_pair=round(ms * 1e6 / pairs, 3))
        for peer, times in theirs.items():
            ratios = sorted(t / o for t, o in zip(times, ours))
            row[peer] = [round(x, 2) for x in (statistics.median(ratios), ratios[0], ratios[-1])]
        if wrong or len(sums) > 1:
            row["disagree"] = sorted(wrong) or "lodestar with itself"
        print(json.dumps(row), flush=True)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", choices=["make", "run"])
parser.add_argument("--dir", required=True)
parser.add_argument("--divide", type=int, default=1, help="make: lists shorter by this factor")
parser.add_argument("--lodestar")
parser.add_argument("--rust")
parser.add_argument("--prepared", action="store_true", help="what can be prepared of the texts is, before the clock starts")
parser.add_argument("--peers", default=PEERS)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--case", nargs="*", default=[], choices=list(CASES), metavar="CASE", help=f"default: all of {', '.join(CASES)}")
arguments = parser.parse_args()
make(arguments.dir, arguments.divide) if arguments.what == "make" else run(arguments)
