"""Random tensor programs: the same program for the same seed, whoever draws it.

Full tensors [rows, cols], rows [cols] and columns [rows, 1]; three to twelve steps of unary and binary ops, scalars,
row and column broadcasts, row reductions, softmax and layer norm; one to three full inputs, several outputs.
"""

from __future__ import annotations

import math
import random

from programs import BINARY, REDUCTIONS, UNARY

KINDS = {
    "unary": 30,
    "scalar": 14,
    "binary": 16,
    "row": 14,
    "reduce": 10,
    "column": 14,
    "softmax": 4,
    "layer_norm": 5,
}
"""Steps and how often they are drawn."""

MOST = 1.2e8
"""Largest full tensor."""


class Draft:
    """A program while it is drawn. Every draw is one call of `draw`, in a fixed order."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.dtype = self.draw.choice(["bf16", "bf16", "fp32"])
        self.shape = self._shape()
        count = self.draw.randint(1, 3)
        self.inputs = [[f"x{place}", self.shape, self.dtype] for place in range(count)]
        self.full, self.columns = [entry[0] for entry in self.inputs], []
        self.steps, self.used = [], set()

    def _shape(self):
        while True:
            rows = max(1, round(math.exp(self.draw.uniform(0, math.log(20000)))))
            cols = round(math.exp(self.draw.uniform(math.log(256), math.log(14336))))
            multiple = self.draw.choice([1, 8, 64, 256])
            cols = min(max(cols // multiple * multiple, 256), 14336)
            if rows * cols <= MOST:
                return [rows, cols]

    def add(self, op, operands, **kw):
        result = f"t{len(self.steps)}"
        self.steps.append([result, op, operands, kw])
        self.used.update(operands)
        return result

    def row(self):
        rows_so_far = [entry[0] for entry in self.inputs if entry[0].startswith("r")]
        if rows_so_far and self.draw.random() < 0.3:
            return self.draw.choice(rows_so_far)
        self.inputs.append([f"r{len(self.inputs)}", self.shape[1:], self.dtype])
        return self.inputs[-1][0]

    def recent(self):
        return self.full[-1] if self.draw.random() < 0.7 else self.draw.choice(self.full)

    def step(self):
        """Draw one step; a column before there is one is none."""
        (what,) = self.draw.choices(list(KINDS), list(KINDS.values()))
        if what == "reduce":
            self.columns.append(self.add(self.draw.choice(REDUCTIONS), [self.recent()]))
        elif what != "column" or self.columns:
            self.full.append(getattr(self, f"_{what}")())

    def _unary(self):
        return self.add(self.draw.choice(UNARY), [self.recent()])

    def _scalar(self):
        return self.add(self.draw.choice(BINARY[:4]), [self.recent()], scalar=self.draw.choice([0.5, 1.25, 3.0]))

    def _binary(self):
        return self.add(self.draw.choice(BINARY), [self.recent(), self.draw.choice(self.full)])

    def _row(self):
        return self.add(self.draw.choice(["add", "mul"]), [self.recent(), self.row()])

    def _column(self):
        return self.add(self.draw.choice(BINARY[:4]), [self.recent(), self.draw.choice(self.columns)])

    def _softmax(self):
        return self.add("softmax", [self.recent()])

    def _layer_norm(self):
        return self.add("layer_norm", [self.recent(), self.row(), self.row()])


def random_program(seed):
    """Return the random program of a seed."""
    draft = Draft(seed)
    for _ in range(draft.draw.randint(3, 12)):
        draft.step()
    if not draft.steps:
        draft.full.append(draft.add("relu", [draft.full[-1]]))
    outputs = [step[0] for step in draft.steps if step[0] not in draft.used]
    if draft.draw.random() < 0.25:
        extra = draft.draw.choice(draft.steps)[0]
        if extra not in outputs:
            outputs.append(extra)
    inputs = [entry for entry in draft.inputs if entry[0] in draft.used]
    return {"seed": seed, "inputs": inputs, "steps": draft.steps, "outputs": outputs}
