"""PHP opens its extensions with RTLD_DEEPBIND: about 20 of them come with Debian's php-cli."""

import shutil

import pytest
from modes import assert_silent
from results import Run

pytestmark = pytest.mark.skipif(shutil.which("php") is None, reason="not installed: php")

EXTENSIONS_MIN = 15
# Texts that the C library, the extensions and PHP itself make, and each other free.
SCRIPT = """
for ($i = 0; $i < 200; $i++) {
  $all[] = [iconv("UTF-8", "UTF-16", str_repeat("a", $i)), ctype_alpha("x"), gettext("none"),
            posix_getpwuid(0), realpath("/usr/.."), json_encode(token_get_all("<?php f($i);"))];
}
exit(count($all) === 200 ? 0 : 1);
"""


def test_extensions_work(plain: Run, preload: Run) -> None:
    expected = plain(["php", "-m"])
    result = preload(["php", "-m"])
    assert (result.returncode, result.stdout, result.stderr) == (0, expected.stdout, expected.stderr)
    shared = preload(["php", "-r", "echo count(get_loaded_extensions());"])
    assert int(shared.stdout) >= EXTENSIONS_MIN
    assert_silent(preload(["php", "-r", SCRIPT]))
