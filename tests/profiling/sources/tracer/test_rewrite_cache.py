"""A module is rewritten once; what was kept is what was done."""

import pytest

from louvain_um.gpu.runtime import compile_cache
from louvain_um.profiling.sources.tracer import rewrite as module
from louvain_um.profiling.sources.tracer.rewrite import rewrite
from louvain_um.profiling.sources.tracer.tokenizer import PtxError

PTX = """.version 8.0
.target sm_90
.address_size 64
.entry clear(.param .u64 p) {
.reg .b64 %rd1; .reg .b32 %r1;
ld.param.u64 %rd1, [p]; mov.u32 %r1, 0; st.global.u32 [%rd1], %r1; ret; }
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path))
    return compile_cache.cache_folder()


def test_the_second_time_nothing_is_rewritten(monkeypatch, folder):
    first = {log: module.rewritten(PTX, log=log) for log in (False, True)}
    assert first[False] == rewrite(PTX)
    assert first[True] == rewrite(PTX, log=True) != first[False]
    assert len(list(folder.glob("*.rewritten"))) == 2
    monkeypatch.setattr(module, "rewrite", None)
    assert {log: module.rewritten(PTX, log=log) for log in (False, True)} == first


def test_other_text_other_code_and_damage_are_rewritten(monkeypatch, folder):
    module.rewritten(PTX)
    assert module.rewritten(PTX.replace("clear", "wipe")).functions == ("wipe",)
    monkeypatch.setattr(module, "_edition", lambda: "another")
    module.rewritten(PTX)
    files = list(folder.glob("*.rewritten"))
    assert len(files) == 3
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    assert module.rewritten(PTX) == rewrite(PTX)


def test_what_is_no_module_is_not_kept(folder):
    with pytest.raises(PtxError):
        module.rewritten("nonsense")
    assert not list(folder.glob("*")) if folder.exists() else True
