"""Help is complete: no truncated names, every choice and default listed."""

import inspect
import os
import re
import subprocess
from importlib import import_module

import pytest
import typer

from louvain_um.cli import COMMANDS, app
from louvain_um.generators import GENERATORS
from tests.cli.failures.processes import start

EVERY = [[name] for name in COMMANDS] + [["generate", kind] for kind in GENERATORS]


@pytest.fixture
def text(run, monkeypatch):
    def call(*command):
        monkeypatch.setenv("COLUMNS", "80")
        done = run(*command, "--help")
        assert done.code == 0
        return done.out

    return call


@pytest.mark.parametrize("command", [[], *EVERY], ids=" ".join)
def test_no_noise_and_nothing_cut(text, command):
    shown = text(*command)
    assert not re.search(r"<(str|int|float|bool|path)>", shown)
    assert not re.search(r"\w(…|\.\.\.)", shown.replace("[ARGS]...", ""))
    assert max(map(len, shown.splitlines())) <= 80
    assert "{" not in shown.splitlines()[0]
    assert "}" not in shown.splitlines()[0]


def declared():
    """Yield what the commands declare: command, parameter, how Typer is to take it."""
    for name in COMMANDS:
        module = import_module(f"louvain_um.cli.commands.{name}")
        group = getattr(module, "app", None)
        callbacks = (
            [each.callback for each in group.registered_commands]
            if group
            else [getattr(module, name)]
        )
        for callback in callbacks:
            for parameter in inspect.signature(callback, eval_str=True).parameters.values():
                for about in getattr(parameter.annotation, "__metadata__", ()):
                    yield callback.__name__, parameter.name, about


def test_the_list_of_commands_shows_their_first_sentences():
    group = typer.main.get_command(app)
    shown = {name: group.get_command(None, name).get_short_help_str(1000) for name in COMMANDS}
    assert shown == COMMANDS


def test_options_have_explicit_names_where_typer_would_capitalise_them():
    # Typer 0.27 takes an option's name from its metavar where they differ in case alone:
    # --DEVICE was there, --device was not.
    named = 0
    for command, name, about in declared():
        if isinstance(about, typer.models.OptionInfo):
            alike = (about.metavar or "").lower() == name.replace("_", "-")
            message = (
                about.default,
                *about.param_decls,
            )  # the first name is where a default would be
            assert not alike or f"--{name}" in message, f"{command} --{name}"
            named += alike
    assert named >= 5


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("louvain-um det", {"detect"}),
        ("louvain-um detect --method l", {"louvain", "leiden"}),
        ("louvain-um detect --thr", {"--threshold", "--threads"}),
    ],
)
def test_shells_complete_commands_and_options(typed, offered):
    asked = {
        "_LOUVAIN_UM_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    process = start(stdout=subprocess.PIPE, env={**os.environ, **asked})
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert set(out.split()) == offered


def test_help_of_detect_is_for_every_day(run):
    text = run("detect", "--help").out
    assert "--device-budget" in text
    for word in ("ballast", "eviction", "--exchange", "adv1"):
        assert word not in text
    assert "--ballast" in run("profile", "--help").out
