"""Signals end a command: no file is left half written, and the exit code names the signal."""

import logging
import os
import signal
import subprocess
import sys
import time
from itertools import islice

import pytest

from louvain_um import api, cli
from louvain_um.cli import exit_codes
from louvain_um.cli.exit_codes import Interruption, handler
from louvain_um.core import interrupts
from louvain_um.errors import GraphFormatError
from louvain_um.formats import read_graph
from tests.cli.failures.processes import is_running, start, wait_for_handlers
from tests.paths import ROOT

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True, scope="module")
def interruptible():
    """Deliver interrupts to child processes, also if tests run in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "terminal closed"),
    ],
)
def test_a_signal_leaves_no_file(tmp_path, number, code, word):
    out = tmp_path / "labels.csv"
    process = start("detect", "-", "-o", out, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write("1 2\n")
    process.stdin.flush()
    wait_for_handlers(process)
    time.sleep(1)  # by now it is reading its input
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.strip() == f"louvain-um: {word}"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def handled():
    hook = sys.unraisablehook
    handler.first, handler._raised = None, -exit_codes.PAUSE
    handler.install()
    yield
    handler.remove()
    handler.first = None
    logging.disable(logging.NOTSET)
    sys.unraisablehook = hook
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("command", ["detect", "convert"])
@pytest.mark.parametrize("existing", [None, "old"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("step", ["open", "fsync", "link", "replace", "close"])
def test_a_signal_while_writing(
    run, two_triangles, tmp_path, monkeypatch, handled, command, existing, late, step
):
    """Whatever the moment, the file is the old one or the new one, and nothing else is left."""
    run("detect", two_triangles, "-q")  # compiles everything needed
    out = tmp_path / "out" / "new.csv"
    out.parent.mkdir()
    if existing:
        out.write_text(existing)
    real, sent = getattr(os, step), []

    def interrupted(*arguments, **options):
        if late:
            result = real(*arguments, **options)
        known = sys._getframe(1).f_locals
        if ".part" in f"{known.get('part')} {known.get('make')}" or step == "fsync":
            sent.append(step)
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)  # several signals come when a session ends
        return result if late else real(*arguments, **options)

    monkeypatch.setattr(os, step, interrupted)
    output = ["-o", out] if command == "detect" else [out]
    done = run(command, two_triangles, *output, *(["--force"] if existing else []))
    monkeypatch.undo()
    assert bool(sent) == (step != ("link" if existing else "replace"))
    if sent:
        assert (done.code, done.err.splitlines()[-1]) == (143, "louvain-um: terminated")
    assert {path.name for path in out.parent.iterdir()} <= {"new.csv"}
    if out.exists():
        text = out.read_text()
        assert text == existing or text.count("\n") in (7, 8)
    else:
        assert not existing


def test_ignored_signals_stay_ignored(two_triangles, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        handler.install()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        handler.remove()
        signal.signal(signal.SIGHUP, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_that_c_code_reports_as_its_own_error(run, two_triangles, monkeypatch):
    def fail(*_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr(api, "run", fail)
    done = run("detect", two_triangles)
    assert (done.code, done.complaint()) == (130, "louvain-um: interrupted")


def test_errors_that_come_from_each_other_are_looked_at_once():
    first, second = ValueError(), TypeError()
    first.__context__, second.__cause__ = second, first
    assert list(islice(exit_codes.origins(first), 3)) == [first, second]


def test_interrupt_inside_a_callback_ends_the_command(two_triangles):
    code = (
        "import ctypes, os, signal, time\n"
        "from louvain_um import api\n"
        "from louvain_um.cli import main\n"
        "back = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "api.run = lambda *_: (back(), [time.sleep(0.01) for _ in range(1000)])\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "detect", str(two_triangles)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "louvain-um: interrupted")
    assert "Traceback" not in done.stderr


def test_libraries_log_nothing_after_a_signal(handled, caplog):
    logging.getLogger("asyncio").error("shown")
    with pytest.raises(exit_codes.Interruption):
        signal.raise_signal(signal.SIGTERM)
    logging.getLogger("asyncio").error("hidden")
    assert [record.message for record in caplog.records] == ["shown"]


def test_a_signal_waits_until_compiled_code_is_made(handled):
    reached = []

    def make():
        with interrupts.held():
            with interrupts.held():
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.01)
            reached.append("the end")

    with pytest.raises(exit_codes.Interruption):
        make()
    assert reached == ["the end"]
    assert handler.first == signal.SIGTERM


def test_an_interrupt_while_kernels_compile(two_triangles, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = start("detect", two_triangles, env=environment, stdout=subprocess.DEVNULL)
    wait_for_handlers(process)
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (0, 130)
    assert process.returncode == 0 or err.splitlines()[-1] == "louvain-um: interrupted"
    assert "Traceback" not in err
    assert "SystemError" not in err


def test_every_moment_of_a_command():
    """A sample of what `benchmarks/kill.py` does for every command."""
    command = [sys.executable, "benchmarks/kill.py", "--moments", "5", "--fresh", "2"]
    command += ["--commands", "detect,convert"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["mmap_large_arrays", "remove_temporary_files"])
def test_a_signal_at_the_very_beginning_or_end_is_one_line(name, monkeypatch, capsys):
    def interrupted():
        raise Interruption(signal.SIGTERM)

    monkeypatch.setattr(cli, name, interrupted)
    monkeypatch.setattr(sys, "argv", ["louvain-um", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "louvain-um: terminated\n"


AFTER_THE_LAST_LINE = """
import os, signal, sys
from louvain_um.cli import exit_codes
remove = exit_codes.handler.remove
def interrupted():
    os.kill(os.getpid(), signal.SIGHUP)
    remove()
exit_codes.handler.remove = interrupted
sys.argv = ["louvain-um", "--version"]
from louvain_um.__main__ import main
main()
"""


def test_a_signal_after_the_last_line_is_named():
    done = subprocess.run(
        [sys.executable, "-c", AFTER_THE_LAST_LINE], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (129, "louvain-um: terminal closed\n")


SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
sys.argv = ["louvain-um", "compare", "a.csv", "b.csv"]
from louvain_um.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["louvain_um.cli", "typer", "louvain_um.formats.labels"])
def test_an_interrupt_of_imports_is_one_line(module):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT.format(module=module)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "louvain-um: interrupted\n")


BEFORE_THE_FIRST_LINE = """
import os, signal, louvain_um.cli
louvain_um.cli.main = lambda: os.kill(os.getpid(), signal.SIGINT)
from louvain_um.__main__ import main
main()
"""


def test_an_interrupt_between_imports_and_the_first_line_is_one_line():
    done = subprocess.run(
        [sys.executable, "-c", BEFORE_THE_FIRST_LINE], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "louvain-um: interrupted\n")


FAKES = {
    "anndata.py": "",
    "h5py.py": """import ctypes, os
def File(name, mode):
    with open("pid", "w") as file:
        file.write(f"{os.getpid()}\\n")
    lib, lock = ctypes.PyDLL(None), ctypes.create_string_buffer(256)
    lib.pthread_mutex_lock(lock), lib.pthread_mutex_lock(lock)
""",
}
"""A library that holds Python's lock for ever."""

IN_PYTHON = "import louvain_um; louvain_um.read_graph('x.h5ad')"


OLD = """from contextlib import nullcontext
__version__ = "3.10.0"
def File(name, mode):
    return nullcontext()
"""
"""A library without what finds links to other files."""


def ended(pid):
    """Return whether a process ends within some seconds."""
    end = time.monotonic() + 20
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.02)
    return not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize(
    ("words", "number", "code", "last"),
    [
        (["-m", "louvain_um", "detect", "x.h5ad"], "SIGINT", 130, "louvain-um: interrupted"),
        (["-m", "louvain_um", "detect", "x.h5ad"], "SIGTERM", 143, "louvain-um: terminated"),
        (["-c", IN_PYTHON], "SIGINT", -signal.SIGINT, "KeyboardInterrupt"),
        (["-c", IN_PYTHON], "SIGKILL", -signal.SIGKILL, ""),
    ],
)
def test_a_library_that_never_returns_is_left(tmp_path, words, number, code, last):
    for name, text in {**FAKES, "x.h5ad": "cells"}.items():
        (tmp_path / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    run = subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    pid, end = tmp_path / "pid", time.monotonic() + 60
    while not (pid.exists() and pid.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.02)
    run.send_signal(getattr(signal, number))
    try:
        _, err = run.communicate(timeout=20)
        assert (run.returncode, err.strip().rpartition("\n")[2]) == (code, last)
        assert ended(int(pid.read_text()))
    finally:
        run.kill()


def test_processes_that_compile_end_with_the_command(tmp_path):
    psutil = pytest.importorskip("psutil")
    caches = dict.fromkeys(("NUMBA_CACHE_DIR", "LOUVAIN_UM_CACHE", "TMPDIR"), str(tmp_path))
    command = start("warmup", "-q", env={**os.environ, **caches, "PYTHONPATH": str(ROOT)})
    this, compiling, end = psutil.Process(command.pid), [], time.monotonic() + 100
    while not compiling and time.monotonic() < end:
        compiling = this.children()
        time.sleep(0.02)
    command.kill()
    command.communicate(timeout=20)
    end = time.monotonic() + 20
    while not compiling or [*filter(is_running, compiling)]:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_library_that_ends_its_process_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "anndata.py").write_text("import os; os.abort()")
    (tmp_path / "x.h5ad").write_text("cells")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(GraphFormatError, match=f"ended with code -{int(signal.SIGABRT)}"):
        read_graph(tmp_path / "x.h5ad")


def test_a_library_that_is_too_old_is_an_error(tmp_path, monkeypatch):
    for name, text in {"anndata.py": "", "h5py.py": OLD, "x.h5ad": "cells"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(GraphFormatError, match=r"h5py 3\.11 or newer, not 3\.10\.0: pip install"):
        read_graph(tmp_path / "x.h5ad")
