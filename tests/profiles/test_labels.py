"""What a site is: the program's own frames."""

from hakmem.profile.labels import Labels, frame_text
from hakmem.profile.model import Frame, Mapping, Profile

LIBRARY, EXTENSION, COMPILED = 0x100000, 0x200000, 0x300000
STACK = (LIBRARY + 1, LIBRARY + 2, COMPILED + 1, LIBRARY + 3, COMPILED + 2, LIBRARY + 4)


def profile(library: str) -> Profile:
    return Profile(
        mappings=[
            Mapping(LIBRARY, LIBRARY + 0x1000, 0, library),
            Mapping(EXTENSION, EXTENSION + 0x1000, 0, "/opt/lib/numpy.so"),
        ],
        names={
            LIBRARY + 1: (Frame("PyBytes_FromSize"),),
            LIBRARY + 2: (Frame("_PyEval_EvalFrameDefault"),),
            LIBRARY + 3: (Frame("_PyEval_EvalFrameDefault"),),
            LIBRARY + 4: (Frame("main"),),
            EXTENSION + 1: (Frame("array_zeros"),),
            COMPILED + 1: (Frame("py::leaf", "/srv/app.py"),),
            COMPILED + 2: (Frame("py::outer", "/srv/app.py"),),
        },
    )


def test_the_interpreter_is_no_site_of_a_python_program() -> None:
    for library in ("/usr/lib/libpython3.13.so.1.0", "/usr/bin/python3.12", "/opt/python3.13t"):
        labels = Labels(profile(library))
        assert [frame_text(frame) for frame in labels.site(STACK, 3)] == [
            "py::leaf (app.py)",
            "py::outer (app.py)",
        ]
        # All of it is in the files.
        assert len(labels.frames(STACK)) == len(STACK)


def test_libraries_below_python_are() -> None:
    labels = Labels(profile("/usr/lib/libpython3.13.so.1.0"))
    functions = [frame.function for frame in labels.site((EXTENSION + 1, *STACK), 3)]
    assert functions == ["array_zeros", "py::leaf", "py::outer"]


def test_an_interpreter_without_names_of_its_functions_stays() -> None:
    labels = Labels(profile("/usr/bin/python3.11"))
    functions = [frame.function for frame in labels.site((LIBRARY + 1, LIBRARY + 2, LIBRARY + 4), 3)]
    assert functions == ["PyBytes_FromSize", "_PyEval_EvalFrameDefault", "main"]
    only_others = Labels(profile("/opt/pythonista/server"))
    assert only_others.site(STACK, 1)[0].function == "PyBytes_FromSize"
