"""Every kernel of the engine is rewritten: all accesses are found, and an assembler agrees."""

import re
import shutil
import subprocess

import pytest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime import compile_cache, kernel_list
from louvain_um.profiling.sources.tracer.kernels import for_driver, isa
from louvain_um.profiling.sources.tracer.rewrite import rewrite
from louvain_um.profiling.sources.tracer.snippet import FIRST_RANGE, LOG, RANGE, STATE, SYMBOL
from louvain_um.profiling.sources.tracer.tokenizer import PtxError
from tests.paths import ROOT

FORMS = ROOT / "tests/gpu/profiling"

ACCESS = re.compile(
    r"^[ \t{]*(?:@!?%\w+[ \t]+)?(?:ld|st|atom|red)(?!\S*\.(?:shared|param|local|const)\b)\.",
    re.MULTILINE,
)
"""Written independently of the rewriter, for what NVRTC makes of the engine: one access a line.
Those that name no space may be of global memory, too."""


def types_of(source):
    """Return template arguments that some of a source's kernels take: others for each source."""
    known = sorted({types for each in kernel_list.CATALOGUE[source].values() for types in each})
    return known[sorted(kernel_list.CATALOGUE).index(source) % len(known)]


def head(target="sm_90"):
    return f".version 8.0\n.target {target}\n.address_size 64\n"


def kernel(*body, name="k"):
    lines = "\n".join(body)
    return (
        f".entry {name}(.param .u64 p) {{\n.reg .pred %p<9>; .reg .b32 %r<9>; "
        f".reg .b64 %rd<9>;\n{lines}\nret;\n}}\n"
    )


def ptx_of(source, names, folder=compile_cache.FOLDER):
    try:
        compile_cache.compiler()
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    image = compile_cache.cached_image(source, names, "--gpu-architecture=compute_90", folder)
    return image.code.rstrip(b"\0").decode()


def assemble(ptx, folder):
    """Run the toolkit's assembler, where there is one that knows the target."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("no ptxas is installed")
    said = subprocess.run([assembler, "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"release (\d+)\.(\d+)", said.stdout)
    if int(release[1]) < 12:
        pytest.skip("the installed ptxas is too old")
    file = folder / "module.ptx"
    file.write_text(for_driver(ptx, (int(release[1]), int(release[2]))))
    done = subprocess.run(
        [assembler, "-arch=sm_90", "-c", "-O1", file, "-o", folder / "module.cubin"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.deep
@pytest.mark.parametrize("source", sorted(kernel_list.CATALOGUE))
def test_every_access_of_the_engine_is_counted(source):
    names = list(kernel_list.together(source, types_of(source)))
    ptx = ptx_of(source, names)
    done = rewrite(ptx)
    assert done.left == {}
    assert len(done.functions) >= len(names)
    assert sum(done.sites.values()) == len(ACCESS.findall(ptx)) > 0
    assert done.text.count("$_found:") == sum(done.sites.values())
    # What was there is there still, in the same order.
    kept = re.sub(r"\{\n\.reg \.pred %_p.*?\$_out:\n\}\n\t", "", done.text, flags=re.DOTALL)
    kept = re.sub(r"\n\t\.shared \.align 16 \.b8 \$_hints\[\d+\];", "", kept)
    kept = re.sub(rf"\n\.const \.align 16 \.b8 {SYMBOL}\[\d+\];\n", "", kept)
    assert kept == ptx


@pytest.mark.deep
def test_what_is_made_of_the_engine_assembles(tmp_path):
    names = list(kernel_list.together("relabel", ""))
    assemble(rewrite(ptx_of("relabel", names)).text, tmp_path)


@pytest.mark.parametrize("log", [False, True])
def test_every_form_assembles(log, tmp_path):
    done = rewrite(ptx_of("forms", ["touch"], FORMS), log=log)
    assert sorted(done.sites.values()) == [1, 24]
    assert done.left == {}
    assert done.text.count("isspacep.global") == 1
    assert done.text.count("$_again:") == 1
    assemble(done.text, tmp_path)


def test_names_and_numbers_as_addresses_and_sizes_assemble(tmp_path):
    body = (
        ".shared .align 16 .b8 own[256]; .shared .align 8 .b64 gate;",
        "ld.global.u32 %r1, [table];",
        "@%p1 red.global.add.u32 [table+8], %r1;",
        "ld.u32 %r1, [%rd1+-4];",
        "mov.u32 %r2, own; mov.u32 %r3, gate;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1+16], 256, "
        "[%r3];",
    )
    text = head().replace("8.0", "8.3") + ".global .align 4 .b8 table[16];\n" + kernel(*body)
    done = rewrite(text, log=True)
    assert done.sites == {"k": 4}
    assemble(done.text, tmp_path)


def test_a_guarded_instruction_counts_under_its_guard():
    text = rewrite(
        head() + kernel("@%p1 ld.global.u32 %r1, [%rd1];", "@!%p2 st.global.u32 [%rd1+4], %r1;")
    ).text
    first, second = text.split("ret;")[0].split("$_out:\n}")[:2]
    assert "@!%p1 bra $_out;" in first
    assert "mov.u64 %_a, %rd1;" in first
    assert "@%p2 bra $_out;" in second
    assert "add.s64 %_a, %rd1, 4;" in second


def test_labels_stay_before_the_count():
    text = rewrite(head() + kernel("$L1: ld.global.u32 %r1, [%rd1];", "bra $L1;")).text
    assert re.search(r"\$L1: \{\n\.reg .*\$_out:\n\}\n\tld\.global\.u32", text, re.DOTALL)


def test_functions_around_an_unknown_instruction_are_left_as_they_are():
    helper = ".func helper() {\n.reg .b64 %rd<2>;\nst.global.u64 [%rd1], %rd1;\nret;\n}\n"
    strange = kernel("call helper;", "surge.global.u32 [%rd1];", name="strange")
    caller = kernel("call helper;", "ld.global.u32 %r1, [%rd1];", name="caller")
    sound = kernel("ld.global.u32 %r1, [%rd1];", name="sound")
    done = rewrite(head() + helper + strange + caller + sound)
    assert done.functions == ("helper", "strange", "caller", "sound")
    assert done.sites == {"sound": 1}
    assert done.left == {
        "strange": "surge.global.u32",
        "helper": "surge.global.u32 in strange",
        "caller": "surge.global.u32 in strange in helper",
    }
    assert helper in done.text
    assert strange in done.text
    assert caller in done.text


def test_functions_from_elsewhere_are_unknown():
    text = head() + ".extern .func vprintf();\n" + kernel("call vprintf;")
    assert rewrite(text).left == {"k": "call of vprintf"}


@pytest.mark.parametrize("text", [head("sm_61"), ".version 8.0\n.target sm_90\n", ""])
def test_what_cannot_be_instrumented(text):
    with pytest.raises(PtxError, match="cannot be instrumented"):
        rewrite(text + kernel("ret;"))


def test_versions_follow_the_driver():
    assert isa((13, 0)) == (9, 0)
    assert isa((12, 4)) == (8, 4)
    assert isa((12, 9)) == (8, 8)
    assert isa((11, 8)) == (7, 8)
    assert for_driver(".version 9.5\n.target sm_90\n", (13, 0)).startswith(".version 9.0\n")
    assert for_driver(".version 8.4\n", (13, 0)) == ".version 8.4\n"
    assert for_driver("", (13, 0)) == ""


def test_the_device_reads_what_the_host_writes():
    assert FIRST_RANGE % 16 == 0
    assert RANGE.itemsize == 32
    assert LOG.itemsize == 24
    fields = STATE.fields
    assert fields["bins"][1] % 8 == 0
    assert fields["last_bin"][1] == fields["bins"][1] + 4
    assert STATE.itemsize < 1 << 14
