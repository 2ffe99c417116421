"""The programs that were measured with PyTorch: one op at a time for the kernel classes, patterns, random programs.

Sizes are this project's own but in `again`: there the committed patterns of other measurements are measured once more.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from random_programs import random_program
from suite_columns import columns
from suite_fill import bags, features, fill, generated_fill, odd_places, padded, places, shortest
from suite_generated import generated, generated_more
from suite_layouts import layouts
from suite_library import library
from suite_more import more
from suite_ops import pointwise
from suite_products import products, vectors
from suite_rows import rows
from suite_shapes import resident, shapes
from suite_small import small
from suite_special import special
from suite_training import training, training_more

BOTH = {"sides": ["eager", "compiled"]}

OWN_PATTERNS = {
    "bias_relu": [{"B": 128, "N": 512}, {"B": 2000, "N": 3000}, {"B": 6000, "N": 8192}],
    "rmsnorm_ops": [{"T": 1, "H": 5120}, {"T": 300, "H": 2048}, {"T": 3000, "H": 5120}, {"T": 12000, "H": 2560}],
    "rmsnorm_fp32_ops": [{"T": 64, "H": 4096}, {"T": 1500, "H": 3072}, {"T": 8192, "H": 4096}],
    "add_rmsnorm": [{"T": 16, "H": 8192}, {"T": 1000, "H": 4096}, {"T": 10000, "H": 3584}],
    "layernorm": [{"T": 100, "H": 768}, {"T": 2048, "H": 1600}, {"T": 12000, "H": 5120}],
    "layernorm_ops": [{"T": 200, "H": 1024}, {"T": 5000, "H": 2048}],
    "softmax": [{"T": 512, "H": 512}, {"T": 2000, "H": 3000}, {"T": 1000, "H": 32000}, {"T": 8192, "H": 2048}],
    "softmax_ops": [{"T": 1024, "H": 1024}, {"T": 2048, "H": 10000}],
    "gelu": [{"T": 128, "H": 3072}, {"T": 4096, "H": 6144}],
    "gelu_ops": [{"T": 128, "H": 4096}, {"T": 5000, "H": 4096}],
    "swiglu": [{"T": 1, "H": 14336}, {"T": 700, "H": 11008}, {"T": 5000, "H": 8192}],
    "five_cheap": [{"S": 100000}, {"S": 10000000}, {"S": 100000000}],
    "dropout_residual_layernorm": [{"T": 512, "H": 1024}, {"T": 4000, "H": 4096}, {"T": 10000, "H": 2048}],
    "rope": [{"T": 100}, {"T": 1000}, {"T": 6000}],
    "matmul": [{"M": 300, "K": 2048, "N": 6000}, {"M": 3000, "K": 5120, "N": 5120}, {"M": 12, "K": 4096, "N": 4096}],
    "matmul_bias_relu": [{"M": 256, "K": 1024, "N": 4096}, {"M": 5000, "K": 2048, "N": 3072}],
    "matmul_bias_gelu": [{"M": 512, "K": 768, "N": 3072}, {"M": 6000, "K": 1024, "N": 4096}],
    "attention_ops": [{"B": 2, "heads": 12, "S": 512, "D": 64}, {"B": 4, "heads": 16, "S": 1024, "D": 128}],
    "attention_sdpa": [{"B": 2, "heads": 12, "S": 512, "D": 64}, {"B": 4, "heads": 16, "S": 1024, "D": 128}],
    "conv_bn_relu": [
        {"N": 8, "Cin": 128, "Cout": 128, "HW": 28, "k": 3},
        {"N": 32, "Cin": 256, "Cout": 64, "HW": 56, "k": 1},
        {"N": 64, "Cin": 32, "Cout": 64, "HW": 112, "k": 3},
    ],
    "fp8_rowwise_quant": [{"T": 128, "H": 4096}, {"T": 3000, "H": 5120}, {"T": 12000, "H": 4096}],
    "cross_entropy": [{"T": 512, "V": 32000}, {"T": 4000, "V": 50257}, {"T": 2048, "V": 128000}],
    "swiglu_mlp": [{"T": 64, "H": 2048, "I": 5632}, {"T": 3000, "H": 2048, "I": 8192}],
    "adam_step": [{"S": 200000}, {"S": 8000000}, {"S": 50000000}],
    "independent4": [{"S": 65536}, {"S": 3000000}, {"S": 40000000}],
}
"""Sizes of this project's own for the patterns of h200_patterns.json."""


def random_fit():
    """Return random programs of other seeds, to fit to."""
    return [random_program(seed) | BOTH for seed in range(5000, 5140)]


def random_fit_more():
    """Return more random programs to fit to."""
    return [random_program(seed) | BOTH for seed in range(6000, 6160)]


def random_judge():
    """Return random programs that nothing is fitted to, and that no effect was chosen by."""
    return [random_program(seed) | BOTH for seed in range(7000, 7100)]


def random_suite():
    """Return random programs that nothing is fitted to."""
    return [random_program(seed) | BOTH for seed in range(1000, 1130)]


def patterns():
    """Return the patterns at sizes of our own."""
    return [
        {"pattern": name, "dims": dims, "host": True} | BOTH for name, every in OWN_PATTERNS.items() for dims in every
    ]


def again():
    """Return the patterns of h200_patterns.json, which others measured, once more."""
    rows = json.loads((Path(__file__).parent / "h200_patterns.json").read_text())["rows"]
    return [{"pattern": row["name"], "dims": row["dims"]} | BOTH for row in rows]


def _part(programs, *, held):
    """Return a third of programs, drawn at random, on which fits are judged, or the rest, to fit to."""
    draw = random.Random(11)
    return [program for program in programs if (draw.random() < 1 / 3) == held]


SUITES = {
    "columns": lambda: _part(columns(), held=False),
    "columns_held": lambda: _part(columns(), held=True),
    "layouts": lambda: _part(layouts(), held=False),
    "layouts_held": lambda: _part(layouts(), held=True),
    "library": lambda: _part(library(), held=False),
    "library_held": lambda: _part(library(), held=True),
    "training": lambda: _part(training(), held=False),
    "training_held": lambda: _part(training(), held=True),
    "training_more": training_more,
    "again": again,
    "patterns": patterns,
    "pointwise": pointwise,
    "rows": rows,
    "products": products,
    "fill": fill,
    "vectors": lambda: _part(vectors(), held=False),
    "vectors_held": lambda: _part(vectors(), held=True),
    "bags": bags,
    "features": features,
    "odd_places": odd_places,
    "places": places,
    "padded": padded,
    "shortest": shortest,
    "generated": generated,
    "generated_fill": generated_fill,
    "generated_more": generated_more,
    "more": more,
    "random_fit": random_fit,
    "random_fit_more": random_fit_more,
    "random_judge": random_judge,
    "resident": resident,
    "shapes": shapes,
    "special": special,
    "small": small,
    "random": random_suite,
}
"""Every suite, a function that returns its programs."""
