"""Measuring a GPU and fitting the model to it. Only `measure` touches CuPy; the rest runs anywhere."""
