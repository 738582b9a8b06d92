import pytest

from louvain_um.profiling.sources.tracer.snippet import (
    PtxAccess,
    UnknownInstruction,
    access_of,
    callee,
)
from louvain_um.profiling.sources.tracer.tokenizer import statements

A = "%rd1"


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("ld.global.u32 %r1, [%rd1];", PtxAccess("read", A)),
        ("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1+16];",
         PtxAccess("read", "%rd1+16")),
        ("@%p1 ld.volatile.global.u8 %rs1, [%rd1];", PtxAccess("read", A)),
        ("ld.relaxed.gpu.global.L2::cache_hint.u64 %rd2, [%rd1], %rd9;", PtxAccess("read", A)),
        ("ld.u32 %r1, [%rd1];", PtxAccess("read", A, generic=True)),
        ("ld.acquire.sys.b64 %rd2, [ %rd1 + -8 ];", PtxAccess("read", "%rd1+-8", generic=True)),
        ("ldu.global.u32 %r1, [table+4];", PtxAccess("read", "table+4")),
        ("st.global.cs.v2.u32 [%rd1+8], {%r1, %r2};", PtxAccess("write", "%rd1+8")),
        ("st.wt.u16 [%rd1], %rs1;", PtxAccess("write", A, generic=True)),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", PtxAccess("atomic", A)),
        ("atom.add.noftz.f16x2 %r1, [%rd1], %r2;", PtxAccess("atomic", A, generic=True)),
        ("red.relaxed.gpu.global.add.u64 [%rd1], %rd2;", PtxAccess("atomic", A)),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", PtxAccess("read", A)),
        ("cp.async.cg.shared::cta.global.L2::cache_hint [%r1], [%rd1+4], 16, %r9, %rd9;",
         PtxAccess("read", "%rd1+4")),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, "
         "[%r3];", PtxAccess("read", A, nbytes="%r2")),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 256;",
         PtxAccess("write", A, nbytes="256")),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], %r2;",
         PtxAccess("atomic", A, nbytes="%r2")),
    ],
)  # fmt: skip
def test_accesses_of_global_memory(text, access):
    assert access_of(statements(text)[0]) == access


@pytest.mark.parametrize(
    "text",
    [
        "ld.param.u64 %rd1, [p];",
        "ld.param::entry.u64 %rd1, [p];",
        "ld.shared::cluster.u32 %r1, [%r2];",
        "ld.const.u32 %r1, [c];",
        "st.local.u32 [%rd1], %r1;",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        "st.bulk.weak [%rd1], 64, 0;",
        "atom.shared.add.u32 %r1, [%r2], 1;",
        "red.shared::cta.add.u32 [%r2], 1;",
        "cp.async.commit_group;",
        "cp.async.wait_group 0;",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];",
        "cp.async.bulk.prefetch.L2.global [%rd1], 256;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 64, "
        "[%r3];",
        "prefetch.global.L2 [%rd1];",
        "mov.u64 %rd1, table;",
        "fma.rn.f64 %fd1, %fd2, %fd3, %fd4;",
    ],
)
def test_what_reaches_no_global_memory(text):
    assert access_of(statements(text)[0]) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t, {%f5,%f6}];", "tex.2d.v4.f32.f32"),
        ("multimem.red.global.add.u32 [%rd1], %r1;", "multimem.red.global.add.u32"),
        ("cp.async.bulk.tensor.1d.shared::cta.global.bulk_group [%r1], [%rd1, {%r2}], [%r3];",
         "cp.async.bulk.tensor"),
        ("wmma.load.a.sync.row.m16n16k16.global.f16 {%r1}, [%rd1];", "wmma.load"),
        ("flurble.global.u32 %r1, [%rd1];", "flurble.global.u32"),
        ("ld.global.u32 %r1, %rd1;", "without an address"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named(text, name):
    with pytest.raises(UnknownInstruction, match=name):
        access_of(statements(text)[0])


def test_calls_name_their_function():
    assert callee(statements("call.uni (retval0), _Z1fj, (param0);")[0]) == "_Z1fj"
    assert callee(statements("call f;")[0]) == "f"
    with pytest.raises(UnknownInstruction, match="by pointer"):
        callee(statements("call (r), %rd1, (p), prototype_0;")[0])
