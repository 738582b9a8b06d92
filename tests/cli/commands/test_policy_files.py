import json

from louvain_um.placement.machine.profiles import load_machine

SIZE = ("--vertices", "1k", "--arcs", "8k", "--machine", "h200")


def test_policies_and_machines_may_be_files(run, tmp_path):
    policy = tmp_path / "mine.toml"
    policy.write_text('graph = "split(0.5)"\n')
    found = run("plan", *SIZE, "--memory", policy, "--json").json
    assert found["policy"] == "mine"
    assert found["placements"]["graph"] == "split(0.5)"
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(load_machine("p4000").to_dict() | {"name": "here"}))
    assert run("plan", *SIZE[:4], "--machine", machine, "--json").json["machine"] == "here"


def test_a_policy_of_other_programs_alone_is_refused(run, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('[groups]\nfoo = "host_mapped"\n[roles]\ntragets = "pinned"\n')
    size = (*SIZE, "--memory", str(mine))
    done = run("plan", *size)
    assert done.code == 2
    assert "policy mine places nothing of Louvain or Leiden" in done.complaint()
    assert "(foo, tragets) are of other programs; say where one of graph, hash" in done.complaint()
    mine.write_text('graph = "pinned"\n[groups]\nfoo = "host_mapped"\n')
    reported = "policy mine names groups and roles, which only other programs have: foo"
    assert reported in run("plan", *size, "--json").json["notes"]


def test_a_policy_on_a_peer_needs_one(run, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('graph = "peer"\n')
    size = ("plan", *SIZE)
    of_program = ("plan", "program", "bfs", *SIZE)
    modelled = ("simulate", "example:les-miserables", "--oversubscription", "0")
    for command, policy in ((size, "--memory"), (of_program, "--memory"), (modelled, "--policies")):
        done = run(*command, policy, str(mine))
        assert done.code == 2
        assert "name one that has room, as in --peer-memory cuda:1" in done.complaint()
        done = run(*command, policy, str(mine), "--peer-memory", "cuda:1")
        assert done.code == 0
