"""Six moods of the courtyard: colours of floor, walls, sky and boxes, with their names."""

from dataclasses import dataclass

Colour = tuple[float, float, float]  # red, green, blue from 0 to 1, as displayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Two colours each for floor tiles, wall stripes and sky (horizon, zenith); box colours.

    `words` ends a caption's "a courtyard …".
    """

    name: str
    words: str
    floor: tuple[Colour, Colour]
    wall: tuple[Colour, Colour]
    sky: tuple[Colour, Colour]
    boxes: tuple[tuple[str, Colour], ...]


def _rgb(code: str) -> Colour:
    red, green, blue = bytes.fromhex(code)
    return red / 255, green / 255, blue / 255


def _pair(first: str, second: str) -> tuple[Colour, Colour]:
    return _rgb(first), _rgb(second)


def _boxes(**codes: str) -> tuple[tuple[str, Colour], ...]:
    return tuple((name, _rgb(code)) for name, code in codes.items())


PALETTES = (
    Palette(
        name="sand",
        words="of sandstone under a blue sky",
        floor=_pair("cdb380", "9a7b50"),
        wall=_pair("dcc49c", "b88f60"),
        sky=_pair("ebe1cd", "6ea5dc"),
        boxes=_boxes(red="be3c32", blue="326e96", yellow="ebbe46", green="4f8a4a", white="f2ece0"),
    ),
    Palette(
        name="dusk",
        words="in violet dusk",
        floor=_pair("5c5478", "3c3458"),
        wall=_pair("966e8c", "6e4c70"),
        sky=_pair("f5a06e", "463c82"),
        boxes=_boxes(
            orange="f07850", teal="5ac8be", yellow="e6d278", pink="e68cb4", white="e8e0f0"
        ),
    ),
    Palette(
        name="mint",
        words="with mint green walls",
        floor=_pair("a2c8a0", "5c8c6e"),
        wall=_pair("e2e6d6", "98bea6"),
        sky=_pair("e1f0f0", "5ab4d2"),
        boxes=_boxes(
            red="dc646e", blue="3c5a96", yellow="f5cd5a", purple="8a5aa0", orange="e68a3c"
        ),
    ),
    Palette(
        name="brick",
        words="of red brick",
        floor=_pair("b4b4b2", "787a7e"),
        wall=_pair("b05c46", "8a4434"),
        sky=_pair("d6e2ec", "5a8ccd"),
        boxes=_boxes(
            green="3c785a", yellow="ebc85a", blue="46508c", white="ece8e2", black="33363c"
        ),
    ),
    Palette(
        name="frost",
        words="of pale blue ice",
        floor=_pair("e4eef6", "96b4d0"),
        wall=_pair("bed2e4", "7a9cc0"),
        sky=_pair("f4f0f2", "aac4e6"),
        boxes=_boxes(orange="e6783c", teal="3c8ca0", purple="964682", red="c83c46", black="343a4a"),
    ),
    Palette(
        name="moss",
        words="of dark stone and moss",
        floor=_pair("567a4a", "324e32"),
        wall=_pair("84725a", "544a3a"),
        sky=_pair("dce4d6", "788c96"),
        boxes=_boxes(red="dc3c3c", yellow="f0dc78", blue="5a82e6", white="e6e6dc", orange="e6913c"),
    ),
)
