import pytest

from louvain_um.profiling.sources.tracer.tokenizer import PtxError, functions, statements

MODULE = """\
//
// Generated; { braces } in comments count for nothing
.version 9.0
.target sm_90a, debug
.address_size 64
	.file	1 "a {b}; c.cu"
.visible .global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
.extern .shared .align 16 .b8 room[];
.extern .func (.param .b32 out) vprintf (.param .b64 words);
.weak .func (.param .b32 out) _Z3addj(
	.param .b32 in
)
{
	.reg .b32 	%r<3>;
	ld.param.u32 %r1, [in]; /* two on
	a line */ add.s32 %r2, %r1, -1;
	st.param.b32 [out+0], %r2;
	ret;
}
.visible .entry main(.param .u64 p) .maxntid 256, 1, 1
.minnctapersm 5
{
	.loc	1 89 0
	.pragma "nounroll";
$L__BB0_1:	@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+-8];
	@%p2 bra $L__BB0_1;
	{
	.reg .pred %q;
	setp.lt.and.f32 %p1|%q, 0f3F800000, 1.5, !%p2;
	call.uni (retval0), _Z3addj, (param0);
	}
	bar.sync 0;;
}
	.section	.debug_str
	{
.b8 65
	}
"""


def test_a_module_falls_into_statements_that_cover_it():
    parsed = statements(MODULE)
    end = 0
    for statement in parsed:
        between = MODULE[end : statement.start]
        assert between.strip() == "" or between.strip()[0] == "/", between
        end = statement.end
    assert MODULE[end:].strip() == ""
    kinds = [statement.kind for statement in parsed]
    assert kinds.count("function") == 3
    assert kinds.count("open") == kinds.count("close") == 3
    assert kinds.count("label") == 1


def test_functions_have_names_and_bodies():
    add, main = functions(statements(MODULE))
    assert (add.name, add.entry) == ("_Z3addj", False)
    assert (main.name, main.entry) == ("main", True)
    assert MODULE[add.body - 1] == "{"
    assert [s.opcode for s in add.statements if s.kind == "instruction"] == [
        "ld", "add", "st", "ret"
    ]  # fmt: skip


def test_an_instruction_in_all_its_parts():
    load, branch, compare, call, wait = (
        s for s in functions(statements(MODULE))[1].statements if s.kind == "instruction"
    )
    assert MODULE[load.start : load.end] == "@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+-8];"
    assert load.predicate == "!%p1"
    assert load.opcode == "ld"
    assert load.modifiers == ("global", "v2", "u32")
    assert load.operands == (("{", "%r1", ",", "%r2", "}"), ("[", "%rd1", "+", "-", "8", "]"))
    assert branch.predicate == "%p2"
    assert branch.operands == (("$L__BB0_1",),)
    assert compare.operands[0] == ("%p1", "|", "%q")
    assert compare.operands[2] == ("1.5",)
    assert call.operands == (("(", "retval0", ")"), ("_Z3addj",), ("(", "param0", ")"))
    assert (wait.opcode, wait.modifiers, wait.operands) == ("bar", ("sync",), (("0",),))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ld.global.u32 %r1, [%rd1]", "line 1: ld lacks its ';'"),
        ("\n\x01", "line 2: .* is not PTX"),
        ("}", "line 1: a brace closes nothing"),
        (".entry k() { ret;", "never closed"),
        (".entry k()", "line 1: a function has no body"),
        ("@%p1 ;", "line 1: a predicate guards nothing"),
        ("{ @", "line 1: .*"),
        ('.file 1 "open', "line 1: .* is not PTX"),
    ],
)
def test_what_is_no_ptx_is_reported_with_its_line(text, complaint):
    with pytest.raises(PtxError, match=complaint):
        functions(statements(text))
