"""Kernels that do nothing but return what a script says."""

from typing import Any

import numpy as np

from louvain_um.gpu.aggregate.kernel_arguments import ARGUMENTS, STATE
from louvain_um.gpu.aggregate.limits import BOUNDS, SAMPLED, SHARE_UNITS
from louvain_um.gpu.move.arguments import CONTROL, SWEEPS
from louvain_um.gpu.out_of_core.vertex_blocks import VERTEX_BLOCKS
from louvain_um.gpu.relabel.relabel import RELABEL_RESULT

LOW = 2**32 - 1


class DryKernels:
    def __init__(self, script, values):
        self.script, self.values = script, values
        # Whether labels were numbered for the current aggregation; the last aggregation of level 0.
        self.numbered = False
        self.first: Any = None
        # Whether refinement summed the communities.
        self.summed = False
        # Whether what is launched on this level counts: it may be launched before that is known.
        self.goes_on = True
        # Whether sums of the level at work take 64 bits.
        self.wide = False

    def prepare(self, units, observer=None):
        pass

    def resident_blocks(self, kernel, threads, shared=0):
        return 5 * 132

    def get(self, source, kernel, types="", observer=None):
        answer = (
            getattr(self, kernel, None)
            if source != "vertex_blocks" or kernel == "begin_sweep"
            else None
        )
        self.wide = types.endswith("u64")
        return lambda grid, block, args: answer(*args) if answer else None

    def move(self, *args):
        moved, self.goes_on = self.script.next_move()
        control = self.leave(pointer(args[2], SWEEPS, "control"), CONTROL)
        control["iterations"], control["visited"] = moved.iterations, moved.arcs_visited
        control["total_moves"], control["total_gain"] = moved.moves, moved.gain

    def begin_sweep(self, rule, shared):
        """Return the result of a sweep in vertex blocks, which is the last: it gains little."""
        moved, self.goes_on = self.script.next_move()
        control = self.leave(pointer(shared, VERTEX_BLOCKS, "control"), CONTROL)
        control["moves"], control["visited"] = (moved.moves, 0), moved.arcs_visited
        # As much as a last sweep may gain: the level is worth aggregating.
        control["gain"] = (min(moved.gain, 1 << 38), 0)

    def refine(self, *args):
        self.summed = not isinstance(args[-1], np.uint64)

    def relabel_communities(self, *args):
        if self.summed and self.goes_on:
            self.sum_communities(*args)
        self.summed = False

    def sum_communities(self, *args):
        sums = self.script.sums.pop(0)
        result = self.leave(args[-1], RELABEL_RESULT)
        result["inside"], result["communities"] = sums.inside, sums.communities
        result["squares"] = parts(sums.squares)

    def size_communities(self, *args):
        self.leave(args[-1], RELABEL_RESULT)["communities"] = self.script.communities

    def sum_level(self, args):
        state = self.state(fields(args))
        state["inside"], state["max_degree"] = self.script.inside, self.script.max_degree
        state["squares"] = parts(self.script.squares)

    @property
    def step(self):
        """The current aggregation: the script's, or level 0's again."""
        return self.script.step if self.numbered else self.first

    def aggregate_small(self, args):
        if not self.goes_on:
            return
        step, self.numbered = self.script.step, True
        state = self.state(fields(args))
        state["vertices"], state["arcs"] = step.communities, step.kept
        self.done(state, fields(args))

    def number_labels(self, args):
        args, self.numbered = fields(args), True
        state = self.state(args)
        state["vertices"] = len(self.part(args).rows.arcs) if args["partial"] else self.step_size()

    def step_size(self):
        return int(self.script.step.communities)

    def sum_members(self, args):
        state, step = self.state(fields(args)), self.step
        state["squares"], state["total"] = parts(step.squares), step.total
        state["nonempty"] = np.count_nonzero(step.rows.arcs)

    def sample_rows(self, args):
        args = fields(args)
        rows, state = self.rows(args), self.state(args)
        self.bound(args, rows, state)
        arcs, kept = int(rows.arcs.sum()), int(rows.kept(partial=False).sum())
        state["kept"] = kept * SHARE_UNITS // max(arcs, 1) * min(arcs, SAMPLED)

    def lay_out(self, args):
        args = fields(args)
        rows, state = self.rows(args), self.state(args)
        ends, chunk = self.bound(args, rows, state), args["chunk_arcs"]
        bounds = np.searchsorted(ends, np.arange(1, BOUNDS - 1) * chunk) + 1
        state["bounds"] = [0, *np.minimum(bounds, args["k"]), args["k"]]
        state["room_at"] = np.append(0, ends)[state["bounds"].astype(np.int64)]
        state["chunk_room"] = np.diff(state["room_at"].astype(np.int64)).max()

    def bound(self, args, rows, state):
        """Set the most arcs that rows can have; return those of all rows up to each."""
        assert len(rows.arcs) == args["k"]
        distinct = int(state["nonempty"]) or args["neighbour_bound"]
        ends = np.cumsum(np.minimum(rows.arcs, distinct))
        state["room"], state["max_arcs"] = ends[-1] if len(ends) else 0, rows.arcs.max(initial=0)
        return ends

    def sum_arcs(self, args):
        args = fields(args)
        state, rows = self.state(args), self.rows(args)
        bounds = state["bounds"].astype(np.int64)
        ends = np.append(0, np.cumsum(rows.kept(bool(args["partial"]))))
        state["written"], base = args["base"], args["base"] - ends[bounds[args["begin"]]]
        for q in range(args["begin"], BOUNDS - 1):
            if bounds[q] == bounds[q + 1]:
                continue
            end = base + ends[bounds[q + 1]]
            state["arcs"] = end
            if end > args["new_capacity"]:
                state["next_chunk"] = q
                return
            state["written"], state["next_chunk"] = end, BOUNDS
        state["next_chunk"] = BOUNDS
        if not args["partial"]:
            self.done(state, args)
        elif args["map"]:
            self.script.step.append(self.part(args))
        else:
            self.script.step.merge()

    def done(self, state, args):
        step = self.step
        if self.numbered:
            self.script.steps.pop(0)
            # Parts that are numbered already are those of the level after the next.
            self.first = step if args["ranks"] and args["n"] == self.script.vertices else self.first
        self.numbered = False
        state["inside"], state["max_degree"] = step.inside, step.max_degree
        state["squares"] = parts(step.squares)
        step.forget()

    def rows(self, args):
        """Return the rows that an aggregation sums: a level's, a range's, or partial ones."""
        if args["partial"] and args["map"]:
            return self.part(args).rows
        return self.step.merged() if not args["map"] else self.step.rows

    def part(self, args):
        """Return the range that an aggregation is about, by where its offsets begin."""
        base = next(a for a in self.values if a <= args["offsets"] <= a + 8 * self.script.vertices)
        first = (args["offsets"] - base) // 8
        return self.script.step.part(first, first + args["n"])

    def state(self, args):
        return self.leave(args["state"], STATE)

    def leave(self, where, kind):
        """Return the memory of a kernel's results, to write to."""
        address = where if isinstance(where, int) else where.data.ptr
        if address not in self.values:
            self.values[address] = np.zeros(kind.itemsize, np.uint8)
        return self.values[address].view(kind)[0]


def fields(args):
    """Return the arguments of an aggregation's kernel by name."""
    record = np.frombuffer(args.tobytes(), ARGUMENTS)[0]
    return {name: int(record[name]) for name in ARGUMENTS.names}


def pointer(struct, layout, name):
    """Return a pointer in a structure that a kernel takes."""
    return int(np.frombuffer(struct.tobytes(), layout)[0][name])


def parts(number):
    """Return a 128-bit sum as the three parts that kernels sum."""
    return [number & LOW, number >> 32 & LOW, number >> 64]
