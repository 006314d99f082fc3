"""scripts/manual.py on a header file: groups, types, structs, texts that stand alone."""

import manual
import roff

HEADER = """/* SPDX */
extern "C" {
/* ---- first ------------- */

/* Makes one. */
HAK_EXPORT void *hak_one(size_t size,
                         int more);
HAK_EXPORT void hak_two(void);

/* ---- things ------------
 *
 * A thing: what it is. */
typedef struct hak_thing hak_thing;

/* Called for each. */
typedef void (*hak_visitor)(void *block);

/* Figures of it. */
struct hak_figures {
  size_t count; /* how many */
};
/* Writes them. */
HAK_EXPORT void hak_figures(struct hak_figures *figures);

/* ---- last -------------
 *
 * Nothing follows yet. */
"""


def test_groups_have_their_declarations_with_what_is_said_of_them() -> None:
    groups = manual.groups_of(HEADER)
    assert [title for title, _ in groups] == ["first", "things", "last"]
    (one,), (thing, visitor, struct, function), (alone,) = (entries for _, entries in groups)
    assert one.text == "Makes one."
    assert one.declarations == ["void *hak_one(size_t size, int more);", "void hak_two(void);"]
    assert (thing.text, thing.declarations) == (
        "A thing: what it is.",
        ["typedef struct hak_thing hak_thing;"],
    )
    assert visitor.declarations == ["typedef void (*hak_visitor)(void *block);"]
    assert struct.declarations == ["struct hak_figures {\n  size_t count; /* how many */\n};"]
    assert function.declarations == ["void hak_figures(struct hak_figures *figures);"]
    assert (alone.text, alone.declarations) == ("Nothing follows yet.", [])


def test_names_and_headlines() -> None:
    declared = [d for _, entries in manual.groups_of(HEADER) for entry in entries for d in entry.declarations]
    names = ["hak_one", "hak_two", "hak_thing", "hak_visitor", "hak_figures", "hak_figures"]
    assert [manual.declared_name(each) for each in declared] == names
    assert [manual.headline(each) for each in declared if "{" in each] == ["struct hak_figures;"]


def test_a_struct_is_a_term_and_its_fields_follow() -> None:
    struct = manual.groups_of(HEADER)[1][1][2]
    page = roff.described(struct.declarations, struct.text)
    assert page.startswith(".TP\n\\fBstruct hak_figures\\fR\nFigures of it.\n")
    assert "  size_t count; /* how many */\n};\n" in page
