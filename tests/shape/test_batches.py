"""The price of a refill and of a flush: frozen in batches.golden, which no change may exceed by 1 %."""

import platform
import shutil

import batches
import pytest

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="counted on x86-64 only"),
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed"),
    pytest.mark.alone,  # builds with all processors, in folders that others read
]

TOLERANCE = 1.01


def test_a_batch_costs_no_more_than_the_golden_file_says() -> None:
    if batches.heading() not in batches.GOLDEN.read_text():
        pytest.skip("the golden file was written with another gcc")
    golden, now = batches.read(), batches.measure()
    assert golden.keys() == now.keys()
    too_much = {
        (load, function): (cost, most)
        for load, costs in now.items()
        for function, cost, most in zip(batches.FUNCTIONS, costs, golden[load], strict=True)
        if not 0 < cost <= most * TOLERANCE
    }
    assert not too_much, "if the change is meant: scripts/golden --update"
