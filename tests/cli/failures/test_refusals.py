"""Commands that make no sense end with one line, before they write anything."""

import shlex

import pandas as pd
import pytest

from louvain_um.gpu.runtime import device
from louvain_um.profiling.simulator.driver import user_functions
from tests.profiling.views.made import paged_run, sweep_rows

FILES = {
    "there.csv": "0,1\n", "there.npz": "mine", "there.html": "mine", "there.json": "mine",
    "road.csv": "from,to,weight\nann,bob,5\nbob,cid,1\nann,cid,2\ndan,eve,7\n",
    "negative.txt": "1 2 -3\n", "numbers.txt": "1 2\n2 3\n", "short.txt": "1\n2\n",
    "names.csv": "x,0\n", "bad.csv": "a,b\n1,2\n", "empty.csv": "",
    "pattern.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n",
    "timed.txt": "a b 1\nb c 2\nc a 3\n",
}  # fmt: skip
SIZE = "--vertices 1000 --arcs 4000"
LARGE = "--vertices 16777216 --arcs 650000000"
STORES = "stores example:les-miserables --batch 10 --steps 1 --stores csr -o out"

REFUSED = [
    ("generate lfr 1.5 -o out.csv", 2, "n must be a whole number like 1000000, 1e6 or 1M"),
    ("generate lfr many -o out.csv", 2, "1e6 or 1M, not 'many'"),
    ("generate grid 3xx -o out.csv", 2, "100x100"),
    ("generate ring --planted labels.nope -o out.csv", 1, ".nope"),
    ("generate grid 3x3 --planted labels.csv -o out.csv", 2, "plants no communities"),
    ("generate ring -o out.nope", 1, ".nope"),
    ("generate ring -o missing/out.csv", 1, "folder"),
    ("generate lfr 300 -o out.csv --planted out.csv", 1, "out.csv"),
    ("generate lfr 300 -o out.csv --planted out.csv --force", 1, "out.csv"),
    ("generate nonsense -o out.csv", 2, "nonsense"),
    ("detect friends.csv --resolution 0", 2, "--resolution must be"),
    ("detect friends.csv --max-level 0", 2, "--max-level must be at least 1, not 0"),
    ("detect friends.csv --max-size 0", 2, "--max-size must be at least 1"),
    ("detect friends.csv --n-iterations 0", 2, "--n-iterations must be at least 1, or -1"),
    ("detect friends.csv --best-of 0", 2, "--best-of must lie in 1 … 1000"),
    ("detect friends.csv --best-of 9 --seed 4294967294", 2, "--seed must leave room for 9 seeds"),
    ("detect friends.csv --fixed none.txt", 1, "none.txt"),
    ("detect friends.csv --seed x", 2, "seed"),
    ("detect friends.csv --threads 0", 2, "1 … 4096"),
    ("detect friends.csv --device tpu", 2, "device"),
    ("detect friends.csv --memory nonsense", 2, "nonsense"),
    ("detect friends.csv --device-budget lots", 2, "lots"),
    ("detect friends.csv --device-budget 0%", 2, "--device-budget must be a share above 0 %"),
    ("detect friends.csv --ballast 5GiB --device cpu", 2, "--device cuda"),
    ("detect friends.csv --ballast much", 2, "--ballast must be a number of bytes or a size"),
    ("detect friends.csv --allow-driver-eviction", 2, "ballast"),
    ("profile friends.csv -o s.npz --ballast 5GiB --device cpu", 2, "--device cuda"),
    ("profile friends.csv -o s.npz --ballast 5GiB", 3, "ballast takes device memory"),
    ("sweep friends.csv -o swept --ballast 5GiB", 2, "omit --ballast, or name the device cuda"),
    ("detect friends.csv --peer-memory gpu1", 2, "gpu1"),
    ("detect friends.csv --format nonsense", 2, "nonsense"),
    ("detect friends.csv --separator ab", 2, "separator"),
    ("detect friends.csv --method magic", 2, "'magic' is not one of 'louvain', 'leiden'"),
    ("detect friends.csv --duplicates x", 2, "'x' is not one of 'once', 'sum'"),
    ("detect friends.csv --ids x", 2, "'x' is not one of 'auto', 'number', 'text'"),
    ("detect friends.csv --top -1", 2, "--top"),
    ("detect friends.csv --oversubscription 30", 2, "pass --device-budget 70%"),
    ("detect friends.csv --machine h200", 2, "GPU that --device names"),
    ("detect friends.csv --hierarchy", 2, "add -o"),
    ("detect friends.csv --safe-csv", 2, "add -o labels.csv"),
    ("detect friends.csv -o labels.nope", 1, ".csv, .tsv, .parquet, .npz, .json, or for the graph"),
    ("detect friends.csv -o missing/labels.csv", 1, "missing"),
    ("detect friends.csv -o there.csv", 1, "there.csv: exists already; pass --force"),
    ("detect friends.csv -o friends.csv --force", 1, "is also the input"),
    ("detect friends.csv --nonsense", 2, "--nonsense"),
    ("detect none.txt --resolution 0", 2, "resolution"),
    ("detect none.txt -o labels.nope", 1, ".nope"),
    ("detect none.txt", 1, "no such file"),
    ("detect .", 1, "folder"),
    ("detect ''", 1, "file name is empty"),
    ("detect", 2, "GRAPH"),
    ("detect example:nonsense", 2, "les-miserables"),
    ("convert friends.csv copy.nope", 1, "suffix"),
    ("convert friends.csv friends.csv --force", 1, "is also the input"),
    ("convert friends.csv there.npz", 1, "--force"),
    ("convert friends.csv no/copy.mtx", 1, "folder"),
    ("convert friends.csv", 2, "argument"),
    ("convert none.txt a.gml", 1, "can be read but not written; use one of .csv .cyjs"),
    ("convert none.txt a.dot", 1, "suffix '.dot' is unknown; use one of .csv .cyjs"),
    ("compare there.csv none.csv", 1, "no such file"),
    ("compare there.csv names.csv", 1, "no vertex in common"),
    ("compare there.csv", 2, "argument"),
    ("compare - -", 2, "-"),
    (f"plan none.mtx {SIZE}", 2, "not both"),
    ("plan none.mtx", 1, "no such file"),
    ("plan none.txt --memory nothing", 2, "nothing"),
    ("plan", 2, "--vertices and --arcs"),
    ("plan --vertices 5", 2, "--vertices and --arcs"),
    ("plan --vertices 5 --arcs 100", 2, "--arcs must lie"),
    ("plan --vertices -5 --arcs 0", 2, "--vertices must lie"),
    ("plan --vertices 1.5 --arcs 0", 2, "--vertices must be a whole number"),
    (f"plan --vertices {'9' * 40} --arcs 0", 2, "--vertices must be less than 2^63"),
    ("plan --vertices 1e6 --arcs 1e20", 2, "--arcs must be less than 2^63"),
    (f"plan {SIZE} --read", 2, "need a GRAPH"),
    (f"plan {SIZE} --format metis", 2, "need a GRAPH"),
    (f"plan {SIZE} --symmetrize", 2, "need a GRAPH"),
    (f"plan {SIZE} --memory nothing.toml", 2, "nothing.toml"),
    (f"plan {SIZE} --device-budget 0%", 2, "budget"),
    (f"plan {SIZE} --device-budget lots", 2, "size"),
    (f"plan {SIZE} --machine mars", 1, "mars"),
    (f"plan {SIZE} --machine h200 --oversubscription 30", 2, "pass --device-budget 70%"),
    ("plan ranks 4", 2, "pass both --vertices and --arcs"),
    (f"plan ranks 1000000 {LARGE}", 2, "ranks must lie in 1 … 65,536, not 1000000"),
    (f"plan devices 1000000 {LARGE}", 2, "devices must lie in 1 … 64, not 1000000"),
    (f"plan ranks 2 --memory auto {SIZE}", 2, "No such option"),
    (f"plan detect --batch 5 {SIZE}", 2, "No such option"),
    (f"plan store heap {SIZE}", 2, "must be one of"),
    (f"plan store bal --memory device {SIZE}", 2, "on the CPU"),
    (f"plan store rows --growth 0.5 {SIZE}", 2, "--growth"),
    (f"plan store rows --method leiden {SIZE}", 2, "No such option"),
    ("plan program dfs friends.csv", 2, "program must be one of bfs"),
    ("plan program bfs --vertices 6", 2, "pass both"),
    ("plan program bfs --vertices 6 --arcs 14 --separator ;", 2, "--format"),
    ("plan program bfs friends.csv --vertices 6 --arcs 14", 2, "not both"),
    ("simulate friends.csv --policies adv10", 2, "adv10"),
    ("simulate friends.csv --oversubscription 110", 2, "percentages"),
    ("simulate friends.csv --oversubscription 100", 2, "--oversubscription must"),
    ("simulate friends.csv --oversubscription some", 2, "--oversubscription must"),
    ("simulate friends.csv --eviction mru", 2, "eviction"),
    ("simulate friends.csv --hold labels", 2, "groups"),
    ("simulate friends.csv -o x.txt", 2, ".csv"),
    ("simulate friends.csv --machine voodoo", 1, "voodoo"),
    ("simulate friends.csv --device-budget 0.7", 2, "--device-budget"),
    ("simulate friends.csv --device-budget 70% --oversubscription 30", 2, "not both"),
    ("simulate friends.csv --program bfs --method leiden", 2, "--program takes no --method"),
    ("simulate friends.csv --program dfs", 2, "program must be one of bfs"),
    ("simulate friends.csv --program bfs --seed 1", 2, "--program takes no --seed"),
    ("simulate friends.csv --policies base,adv2 --session b.npz", 2, "of one policy"),
    ("simulate friends.csv --policies base --oversubscription 0 --session b.npz -o b.npz", 2,
     "are the same file"),
    ("sweep -o out", 2, "GRAPH"),
    ("sweep --study pisa -o out", 2, "pisa"),
    ("sweep example:karate --study thesis -o out", 2, "not both"),
    ("sweep example:karate --machine voodoo -o out", 1, "voodoo"),
    ("sweep example:karate --machine , -o out", 2, "--machine must"),
    ("sweep example:karate --device-budget 8GiB -o out", 2, "--device-budget must be a share here"),
    ("sweep example:karate --device-budget 170% -o out", 2, "at most 100%"),
    ("sweep none.txt -o out", 1, "no such file"),
    ("sweep --study thesis --scale 0 -o out", 2, "--scale"),
    ("sweep example:karate --scale 0.5 -o out", 2, "needs a --study"),
    ("sweep --study thesis --scale -1 -o out", 2, "at most 1"),
    ("sweep --study thesis --symmetrize -o out", 2, "--study takes no reading options"),
    ("sweep --study p4000 --eviction program -o out", 2, "another program"),
    ("sweep example:karate --as-thesis --eviction program -o out", 2, "another program"),
    ("sweep example:karate --as-thesis --program bfs -o out", 2, "--as-thesis takes no --program"),
    ("sweep --study p4000 --program bfs -o out", 2, "--program runs an algorithm"),
    ("sweep example:karate --program bfs --eviction program -o out", 2, "omit --study and"),
    ("sweep example:karate --program bfs --seed 1 -o out", 2, "--program takes no --seed"),
    ("sweep example:karate --machine h200 --energy -o out", 2, "energy needs runs on a GPU; omit"),
    ("profile friends.csv --device cpu -o run.csv", 1, "choose such a name"),
    ("profile friends.csv --device cpu -o there.npz", 1, "--force"),
    ("profile friends.csv --device cpu -o absent/run.npz", 1, "create it first"),
    ("profile friends.csv --device cpu -o a.npz --tracer", 2, "CPU run"),
    ("profile friends.csv --device cpu -o a.npz --resolution 0", 2, "resolution"),
    ("profile friends.csv --device cpu -o a.npz --machine h200", 2, "GPU that --device names"),
    ("profile friends.csv --device cpu -o a.npz --from dan", 2, "omit --from"),
    ("profile friends.csv --device cpu -o a.npz --program pagerank --from dan", 2,
     "omit --from, which only bfs and sssp take"),
    ("profile friends.csv --device cpu -o a.npz --program bfs --method leiden", 2, "--method"),
    ("profile friends.csv --device cpu -o a.npz --program bfs --from zoe", 1, "not a vertex"),
    ("report run.npz -o there.html", 1, "--force"),
    ("report run.npz -o run.npz", 2, "must end in .html"),
    ("report run.npz -o absent/r.html", 1, "create it first"),
    ("report run.npz -o r.html --trace t.txt", 2, "must end in .json"),
    ("report run.npz --trace there.json", 1, "--force"),
    ("report run.npz --charts there.html", 2, "is not a folder"),
    ("report run.npz --charts -", 2, "-: is not a folder"),
    ("sweep example:karate -o -", 1, "-: is not a folder; name another one"),
    ("simulate friends.csv --prefetch rule", 2, "--prefetch must be 'density', not 'rule'"),
    ("report there.html -o r.html", 1, "not a session"),
    ("report absent.npz -o r.html", 1, "no such file"),
    ("report bad.csv -o r.html", 1, "no column 'graph'"),
    ("report empty.csv", 1, "empty.csv: is empty; expected results of louvain-um sweep"),
    ("report good.csv --trace t.json", 2, "--trace needs a session"),
    ("run bfs road.csv --source zoe", 1, "'zoe' is not a vertex of the graph"),
    ("run bfs road.csv", 2, "--source"),
    ("run sssp road.csv --source 0", 1, "'0' is not a vertex"),
    ("run sssp negative.txt --source 1", 1, "negative"),
    ("run bfs numbers.txt --source 9", 1, "9 is not a vertex"),
    ("run bfs road.csv --source ann -o out.nope", 1, ".nope"),
    ("run bfs road.csv --source ann -o road.csv --force", 1, "is also the input"),
    ("run bfs none.csv --source ann --memory nothing", 2, "no memory policy"),
    ("run bfs none.csv --source ann --device-budget 0%", 2, "--device-budget"),
    ("run pagerank road.csv --damping 2", 2, "--damping must lie in 0 … 1"),
    ("run pagerank road.csv --damping 1 --max-iterations 2", 1, "allow more of them"),
    ("run spmv road.csv --vector none.npy", 1, "no such file"),
    ("run spmv road.csv --vector road.csv", 1, "is not a vector"),
    ("run spmv road.csv --vector short.txt", 1, "for each of the 5 vertices"),
    ("run components missing.csv", 1, "missing.csv"),
    ("run components road.csv --threads 0", 2, "--threads"),
    ("run nonsense road.csv", 2, "nonsense"),
    ("resolution friends.csv --low 2 --high 1", 2, "--low must be below high"),
    ("resolution friends.csv --points 1", 2, "--points must lie in"),
    ("resolution friends.csv --low 0", 2, "--low must lie in 1e-100 … 1e+100, not 0"),
    ("resolution none.txt -o friends.csv/b", 1, "friends.csv is not a folder"),
    ("resolution friends.csv -o profile.svg", 2, "without .svg"),
    ("draw none.txt -o a.gif", 2, "must end in .png"),
    ("draw friends.csv -o a.html --kind sizes", 2, "leave out --kind"),
    ("draw friends.csv -o no/a.png", 1, "no folder"),
    ("draw friends.csv --labels l.csv -o a.png --effort best --n-iterations 2 --best-of 3", 2,
     "takes no --effort, --n-iterations, --best-of"),
    ("draw friends.csv --labels l.csv -o a.png --method leiden --device cpu", 2,
     "takes no --method, --device"),
    ("draw friends.csv --labels l.csv -o a.png --kind sizes --seed 3", 2, "takes no --seed"),
    *((f"{command} friends.csv --json --top 3", 2, "--json, which prints all, takes no --top")
      for command in ("detect", "resolution", "ensemble")),
    ("draw - --labels - -o a.png", 2, "only one input can be standard input"),
    *((f"{words} -", 2, "only one input can be standard input") for words in
      ("detect - --initial", "detect - --nodes", "detect friends.csv --nodes - --fixed",
       "draw - -o a.html --nodes", "run spmv - --vector", "compare -", "sweep -o out -")),
    *((f"detect {given} --objective {name}", 2, f"--objective {name} contradicts --{kind}")
      for name, kind, given in (
          ("directed", "symmetrize", "numbers.txt --symmetrize"),
          ("directed", "signed", "numbers.txt --signed --directed"),
          ("signed", "bipartite", "numbers.txt --bipartite"))),
    ("sweep run.npz --method leiden --seed 3 -o out", 2, "takes no --method, --seed"),
    ("sweep run.npz --header -o out", 2, "takes no reading options"),
    ("simulate friends.csv --eviction program --hold graph", 2, "takes no --hold"),
    ("simulate friends.csv --no-prefetcher --prefetch rule.py:f", 2, "takes no --prefetch"),
    ("plan store pages friends.csv --on-cpu --machine p100", 2, "leave it out"),
    ("attach --machine p100 -- true", 2, "takes no --machine"),
    ("plan pattern.mtx --header", 1, "only edge lists take --header"),
    ("calibrate --device cpu", 2, "--device"),
    ("calibrate --device auto", 2, "--device"),
    ("stream timed.txt -o out --every 0", 2, "every"),
    ("stream timed.txt -o out --every 1d --window soon", 2, "window"),
    ("stream timed.txt -o out --renew 7", 2, "renew"),
    ("stream timed.txt -o out --audit 9", 2, "audit"),
    ("stream timed.txt -o out --time when", 1, "when"),
    ("stream example:karate --every 10 -o out", 1, "name a file of timed edges"),
    ("stores example:karate --every 10 -o out", 1, "name a file of timed edges"),
    ("stores example:karate -o there.csv", 1, "there.csv: is not a folder; name another one"),
    ("stores example:karate -o out --stores rows,trie", 2, "--stores must be one of"),
    ("stores there.csv --directed --format edges -o out", 1, "read it without --directed"),
    (f"{STORES} --sort", 2, "takes no --sort"),
    (f"{STORES} --window 5", 2, "timed streams; pass --every"),
    (f"{STORES} --every 5", 2, "--every takes no --batch, --steps"),
    (f"{STORES} --every 5 --batch 10000 --steps 5 --symmetrize", 2, "reading options"),
    (f"{STORES} --seed -1", 2, "--seed must lie in"),
    (f"{STORES} --batch 10000000000", 2, "--batch must lie in"),
    ("nonsense", 2, "nonsense"),
]  # fmt: skip


def test_every_refusal_is_one_line_and_leaves_no_file(run, two_triangles, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    paged_run().save(tmp_path / "run.npz")
    pd.DataFrame(sweep_rows()).to_csv(tmp_path / "good.csv", index=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # As in a process of its own: other tests register orders and prefetchers.
    monkeypatch.setattr(user_functions, "_EVICTIONS", {})
    monkeypatch.setattr(user_functions, "_PREFETCHERS", {})
    cuda = []  # what starts it has to wait for it before it ends
    monkeypatch.setattr(device, "start_early", cuda.append)
    wrong = []
    for command, code, message in REFUSED:
        done = run(*shlex.split(command))
        said = " ".join(done.err.split())
        # Typer shows how a command is used; other refusals are one line.
        usage = code == 2 and "Usage: " in said
        lines = [x for x in done.err.splitlines() if x.startswith("louvain-um: ")]
        fine = done.out == "" and (usage or len(lines) == 1) and "Traceback" not in said
        bug = "this is a bug" in said or "Value error" in said
        if done.code != code or message not in said or bug or not fine:
            wrong.append(f"{command}: {done.code}, {done.out}{done.err}")
        if {path.name: path.read_bytes() for path in tmp_path.iterdir()} != before:
            wrong.append(f"{command}: files changed")
            break
    assert not cuda
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("text", "where"), [("", ": "), ("1 2\n2 -3\n", ":2: ")])
def test_bad_files_are_named_in_one_line(run, tmp_path, text, where):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    done = run("detect", path, "-o", tmp_path / "labels.csv")
    assert (done.code, f"bad.txt{where}" in done.complaint()) == (1, True)
    assert [*tmp_path.iterdir()] == [path]


def test_header_taken_for_an_edge_is_noticed(run, shared_data):
    done = run("detect", shared_data / "facebook_combined.txt", "--json")
    assert done.json["graph"]["vertices"] == 4039
    assert "header" in done.err


@pytest.mark.parametrize(
    "command", [["detect", "no.txt", "-o"], ["convert", "no.txt"], ["generate", "ring", "-o"]]
)
def test_a_folder_that_cannot_be_written_is_refused_first(run, tmp_path, monkeypatch, command):
    monkeypatch.setattr("louvain_um.core.atomic_files.os.access", lambda *_: False)
    line = run(*command, tmp_path / "out.csv").complaint()
    assert f"the folder {tmp_path} cannot be written" in line
