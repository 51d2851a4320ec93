"""The tiny world's scenes and captions: the same for a seed, roomy, and wholly told."""

from dataclasses import replace
from itertools import combinations
from math import hypot

import pytest

from tools.tiny_world.caption import MOST_BYTES, PLACES, caption, place_of
from tools.tiny_world.clip import HELD_OUT, make_clip
from tools.tiny_world.ground import FROM_BOX, gap_to_box, is_clear, sight, wall_ahead
from tools.tiny_world.layout import make_scene
from tools.tiny_world.lens import HEIGHT, WIDTH, intrinsics
from tools.tiny_world.palettes import PALETTES
from tools.tiny_world.scene import EYE, MOST_BOXES, Box, Scene, placement

SCENES = [make_scene(seed) for seed in range(80)]
SEEDS = range(0, 80, 2)


def longest_said(scene: Scene) -> Scene:
    """The scene with as many boxes, and as long words, as there can be."""
    boxes = [b for b in scene.boxes if place_of(scene, b) == "ahead"]
    name = max((name for name, _ in scene.palette.boxes), key=len)
    longest = replace(boxes[0], colour_name=name, size="tall")
    x, z = scene.start
    around = [replace(longest, centre=(x + i, z + j)) for i in (-1, 1) for j in (-1, 1)]
    return replace(scene, boxes=(*[longest] * (MOST_BOXES - 4), *around))


def test_a_seed_always_makes_the_same_clip() -> None:
    one, other = make_clip(3, frames=41), make_clip(3, frames=41)
    assert one.scene == other.scene
    assert (one.action, one.caption) == (other.action, other.caption)
    assert (one.poses == other.poses).all()
    assert len({scene.boxes[0].centre for scene in SCENES}) == len(SCENES)


def test_held_out_seeds_are_far_from_those_that_count_up() -> None:
    assert HELD_OUT == 9_000_000
    assert make_clip(HELD_OUT, frames=9).scene == make_scene(HELD_OUT)


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_stand_in_the_courtyard_and_apart(seed: int) -> None:
    scene = SCENES[seed]
    assert 4 <= len(scene.boxes) <= MOST_BOXES
    for box in scene.boxes:
        for centre, half, size in zip(box.centre, box.half, scene.half, strict=True):
            assert abs(centre) + half < size
        assert abs(box.height - EYE) > 0.03, "a top seen from its own height is no face at all"
    for one, other in combinations(scene.boxes, 2):
        gap = max(
            abs(a - b) - c - d
            for a, b, c, d in zip(one.centre, other.centre, one.half, other.half, strict=True)
        )
        assert gap > max(*one.half, *other.half), "nearer has to mean in front"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_begins_with_room_ahead_and_something_to_see(seed: int) -> None:
    scene = SCENES[seed]
    assert is_clear(scene, scene.start)
    assert wall_ahead(scene.half, scene.start, scene.heading) > 1.5
    assert sight(scene, scene.start, scene.heading) > 1.0
    assert all(gap_to_box(box, scene.start) > FROM_BOX for box in scene.boxes)
    assert sum(place_of(scene, box) == "ahead" for box in scene.boxes) >= 1


def test_most_boxes_are_in_the_first_view_and_some_are_not() -> None:
    ahead = [place_of(scene, box) == "ahead" for scene in SCENES for box in scene.boxes]
    assert 0.5 < sum(ahead) / len(ahead) < 0.8


def test_all_palettes_are_drawn_about_equally() -> None:
    names = [scene.palette.name for scene in SCENES]
    assert len({palette.name for palette in PALETTES}) == len(PALETTES) == 6
    assert all(names.count(palette.name) > len(SCENES) / 15 for palette in PALETTES)


def test_the_placement_turns_the_first_view_into_the_scene() -> None:
    scene = replace(SCENES[0], start=(0.5, -1.0), heading=0.25)
    ahead = placement(scene) @ [0, 0, 2, 1]
    assert hypot(ahead[0] - 0.5, ahead[2] + 1.0) == pytest.approx(2)
    assert ahead[0] > 0.5, "a heading to the right leads to +x"


def test_words_for_places_go_round_the_start() -> None:
    scene = replace(SCENES[0], start=(1.0, 0.0), heading=0.0)
    box = scene.boxes[0]
    around = {(1.0, 2.0): "ahead", (-1.0, 0.0): "left", (2.0, 0.0): "right", (1.0, -2.0): "behind"}
    assert set(around.values()) == set(PLACES)
    assert {c: place_of(scene, replace(box, centre=c)) for c in around} == around


def said(box: Box) -> str:
    return f"a {box.size} {box.colour_name} box"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_caption_names_the_palette_and_every_box(seed: int) -> None:
    scene = SCENES[seed]
    text = caption(scene)
    assert caption(scene) == text
    assert scene.palette.words in text
    assert text.count(" box,") + text.count(" box.") == len(scene.boxes)
    for box in scene.boxes:
        assert text.count(said(box)) == [said(b) for b in scene.boxes].count(said(box))


def test_the_longest_captions_fit() -> None:
    longest = [len(caption(longest_said(scene)).encode()) for scene in SCENES]
    assert max(longest) <= MOST_BYTES
    assert max(longest) > 200, "or the scenes above are not the longest"


def test_captions_differ_in_their_words() -> None:
    openings = {caption(scene).split(".")[0].replace(scene.palette.words, "") for scene in SCENES}
    assert len(openings) > 3


def test_the_lens_sees_the_same_at_every_size() -> None:
    assert intrinsics() == (0.7 * WIDTH, 0.7 * WIDTH, WIDTH / 2, HEIGHT / 2)
    assert [2 * x for x in intrinsics(width=160, height=96)] == pytest.approx(intrinsics())
