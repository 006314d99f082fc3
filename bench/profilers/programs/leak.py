"""The load of leak.cc in Python: twelve sites that leak in known shares, among objects that live shortly."""

import sys
import time

HEADER_BYTES = sys.getsizeof(b"")
leaked: list[bytes] = []


def bytes_of(size: int) -> bytes:
    return bytes(size - HEADER_BYTES)


def site_orders() -> None:
    leaked.extend([bytes_of(64) for _ in range(1600)])


def site_sessions() -> None:
    leaked.extend([bytes_of(256) for _ in range(320)])


def site_cache() -> None:
    leaked.extend([bytes_of(4096) for _ in range(16)])


def site_images() -> None:
    leaked.extend([bytes_of(16384) for _ in range(3)])


def site_index() -> None:
    leaked.extend([bytes_of(128) for _ in range(300)])


def site_names() -> None:
    leaked.extend([bytes_of(48) for _ in range(640)])


def site_logs() -> None:
    leaked.extend([bytes_of(1024) for _ in range(24)])


def site_parse() -> None:
    leaked.extend([bytes_of(512) for _ in range(38)])


def site_frames() -> None:
    leaked.extend([bytes_of(8192) for _ in range(2)])


def site_tasks() -> None:
    leaked.extend([bytes_of(96) for _ in range(128)])


def site_stats() -> None:
    leaked.extend([bytes_of(48) for _ in range(128)])


def site_misc() -> None:
    leaked.extend([bytes_of(80) for _ in range(48)])


SITES = (
    site_orders, site_sessions, site_cache, site_images, site_index, site_names,
    site_logs, site_parse, site_frames, site_tasks, site_stats, site_misc,
)  # fmt: skip


def churn(rounds: int) -> None:
    for i in range(rounds):
        table = {key: "x" * (20 + (i + key * 7) % 200) for key in range(40)}
        rows = [[1] * (4 + (row * 5 + i) % 60) for row in range(40)]
        assert len(table) == len(rows)


def turn() -> None:
    for site in SITES:
        site()
    churn(60)


def main() -> None:
    amount = float(sys.argv[2])
    if sys.argv[1] == "work":
        for _ in range(int(amount)):
            turn()
        return
    start, i = time.monotonic(), 0
    while time.monotonic() < start + amount:
        turn()
        if i == 0:
            print("leaking", flush=True)
        i += 1
        time.sleep(max(0.0, start + i / 20 - time.monotonic()))


main()
