"""openssl: keys, certificates, signed messages, a cipher over a large file; each side reads the other's."""

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

from real.sides import Side, Sides

INPUT_BYTES = 32 << 20
CIPHER = "enc -aes-256-cbc -pbkdf2 -iter 20000 -S 0011223344556677 -pass pass:hakmem"
SIGNED_MESSAGE = """\
req -x509 -newkey rsa:3072 -nodes -keyout ca.key -out ca.pem -subj /CN=authority
req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out request -subj /CN=signer
x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -out signer.pem
cms -sign -binary -nodetach -in message -signer signer.pem -inkey key -out signed"""


def test_digest_and_cipher(sides: Sides, program: Callable[[str], Path], tmp_path: Path) -> None:
    """What does not depend on random numbers is the same, byte by byte."""
    openssl = program("openssl")
    plain_text = tmp_path / "input"
    plain_text.write_bytes(random.Random(3).randbytes(INPUT_BYTES))

    def job(side: Side) -> list[str]:
        side.run([openssl, *CIPHER.split(), "-in", plain_text, "-out", "cipher"])
        side.run([openssl, *CIPHER.split(), "-d", "-in", "cipher", "-out", "back"])
        assert (side.folder / "back").read_bytes() == plain_text.read_bytes()
        digests = [
            side.run([openssl, "dgst", algorithm, plain_text]).stdout
            for algorithm in ("-sha256", "-blake2b512")
        ]
        return [*digests, hashlib.sha256((side.folder / "cipher").read_bytes()).hexdigest()]

    sides.same(job)


def test_keys_and_signatures(sides: Sides, program: Callable[[str], Path]) -> None:
    """What depends on random numbers is verified by the other side."""
    openssl = program("openssl")
    for side in sides:
        (side.folder / "message").write_text("a message\n")
        for step in SIGNED_MESSAGE.splitlines():
            side.run([openssl, *step.split()])
    for signer, verifier in (sides, reversed(list(sides))):
        files = ["-in", signer.folder / "signed", "-CAfile", signer.folder / "ca.pem"]
        assert verifier.run([openssl, "cms", "-verify", *files]).stdout == "a message\n"
