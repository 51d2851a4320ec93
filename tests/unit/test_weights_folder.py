"""model.json is read strictly, and a folder is what its model.json says."""

import copy
import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sanawm_cli.configs import NetworkConfig, TextConfig, VaeConfig
from sanawm_cli.errors import WeightsError
from sanawm_cli.preset import load_preset, presets_folder
from sanawm_cli.weights.folder import FileFacts, ModelFolder, file_sha256, open_model_folder

TINY = presets_folder() / "tiny"
TABLE: dict[str, Any] = json.loads((TINY / "model.json").read_text(encoding="utf-8"))
CONTENTS = {"dit.safetensors": b"network" * 9, "vae.safetensors": b"vae", "text.safetensors": b""}
REQUIRED = {
    "name": "str",
    "trained": "bool",
    "note": "str",
    "network": "dict",
    "vae": "dict",
    "text": "dict",
    "files": "dict",
}
SECTIONS = {"network": NetworkConfig, "vae": VaeConfig, "text": TextConfig}
FIELDS = [(part, f.name) for part, kind in SECTIONS.items() for f in fields(kind)]
MAX_BYTES = 4_000_000  # of the model that the package ships


def facts(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def small_table(**values: object) -> dict[str, Any]:
    """The tiny model's table with small files; `...` takes a key away."""
    table = copy.deepcopy(TABLE) | {"files": {n: facts(d) for n, d in CONTENTS.items()}} | values
    return {key: value for key, value in table.items() if value is not ...}


def write(folder: Path, table: object) -> Path:
    folder.mkdir(exist_ok=True)
    for name, data in CONTENTS.items():
        (folder / name).write_bytes(data)
    (folder / "model.json").write_text(json.dumps(table), encoding="utf-8")
    return folder


def refusal(folder: Path, table: object) -> WeightsError:
    write(folder, table)
    with pytest.raises(WeightsError) as caught:
        open_model_folder(folder)
    assert str(folder) in caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


# --- the model that comes with the package ------------------------------------------------------


def test_the_tiny_model_is_whole_and_fits_its_preset() -> None:
    model = open_model_folder(TINY)
    model.check_files()
    model.check_fits(load_preset("tiny"))


def test_the_tiny_model_says_that_it_is_untrained() -> None:
    model = open_model_folder(TINY)
    assert model.trained is False
    assert model.label == "tiny (untrained)"
    assert "untrained" in model.note.lower()


def test_the_tiny_model_is_small_and_has_nothing_beside_what_it_lists() -> None:
    there = {path.name for path in TINY.iterdir()}
    assert there == {"model.json", *open_model_folder(TINY).files}
    assert sum(path.stat().st_size for path in TINY.iterdir()) <= MAX_BYTES


# --- reading ------------------------------------------------------------------------------------


def test_what_is_read(tmp_path: Path) -> None:
    model = open_model_folder(write(tmp_path / "m", small_table(name="mine", trained=True)))
    assert (model.name, model.trained, model.label) == ("mine", True, "mine")
    assert model.path == tmp_path / "m"
    assert model.network == load_preset("tiny").network
    assert model.files["vae.safetensors"] == FileFacts(**facts(b"vae"))
    assert model.file("vae.safetensors") == tmp_path / "m" / "vae.safetensors"
    model.check_files()


def test_remarks_of_other_programs_are_let_through(tmp_path: Path) -> None:
    open_model_folder(write(tmp_path, small_table(license="MIT", made_by={"tool": 1})))
    open_model_folder(write(tmp_path, small_table(license=..., provenance=...)))


@pytest.mark.parametrize("key", REQUIRED)
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    message = refusal(tmp_path, small_table(**{key: ...})).message
    assert message.endswith(f"model.json: {key} is missing or no {REQUIRED[key]}")


@pytest.mark.parametrize("key", REQUIRED)
@pytest.mark.parametrize("value", [None, 1, 0.5, [], [1]], ids=repr)
def test_a_value_of_another_kind_is_refused(tmp_path: Path, key: str, value: object) -> None:
    message = refusal(tmp_path, small_table(**{key: value})).message
    assert f"{key} is missing or no {REQUIRED[key]}" in message


@pytest.mark.parametrize(("part", "key"), FIELDS)
def test_sizes_are_read_as_strictly_as_presets(tmp_path: Path, part: str, key: str) -> None:
    def changed(**values: object) -> dict[str, Any]:
        section = {**TABLE[part], **values}
        return small_table(**{part: {k: v for k, v in section.items() if v is not ...}})

    at = f"model.json: {part}:"
    assert f"{at} missing key {key!r}" in refusal(tmp_path, changed(**{key: ...})).message
    assert f"{at} {key} must be " in refusal(tmp_path, changed(**{key: None})).message
    misspelt = refusal(tmp_path, changed(**{f"{key}_": 1}))
    assert f"{at} unknown key '{key}_'" in misspelt.message
    assert (misspelt.hint or "").startswith(f"did you mean {key}?")


@pytest.mark.parametrize("schema", [..., None, 0, 2, "1", []], ids=repr)
def test_another_schema_is_refused(tmp_path: Path, schema: object) -> None:
    assert "schema is not 1" in refusal(tmp_path, small_table(schema=schema)).message


@pytest.mark.parametrize("table", [[], "model", 1, None], ids=repr)
def test_json_that_is_no_object_is_refused(tmp_path: Path, table: object) -> None:
    assert "schema is not 1" in refusal(tmp_path, table).message


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"<html>", b"[" * 100_000, b'{"schema": ' + b"1" * 5000 + b"}"],
    ids=["empty", "torn", "no text", "a page", "deep", "a long number"],
)
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.json").write_bytes(data)
    with pytest.raises(WeightsError, match=r"model\.json: cannot be read as JSON: "):
        open_model_folder(tmp_path)


def test_what_is_no_model_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("missing", "file", "nul\0"):
        with pytest.raises(WeightsError, match="no such model folder") as caught:
            open_model_folder(tmp_path / name)
        assert "--model" in (caught.value.hint or "")
    with pytest.raises(WeightsError, match=r"no model\.json in it"):
        open_model_folder(tmp_path)
    with pytest.raises(WeightsError, match="cannot be read"):
        open_model_folder(tmp_path / ("x" * 300))
    (tmp_path / "model.json").mkdir()
    with pytest.raises(WeightsError, match="cannot be read"):
        open_model_folder(tmp_path)


OUTSIDE = ["", ".", "..", "../dit", "a/b", "a/", "./a", "/etc/passwd", "..\\a", "C:\\a", "a\\"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    message = refusal(tmp_path, small_table(files={name: facts(b"")})).message
    assert f"{name!r} is not the name of a file in the folder" in message


@pytest.mark.parametrize("value", [None, 3, "x", []], ids=repr)
def test_a_file_has_facts(tmp_path: Path, value: object) -> None:
    message = refusal(tmp_path, small_table(files={"a": value})).message
    assert message.endswith("the facts of a are missing")


@pytest.mark.parametrize("key", ["bytes", "sha256"])
@pytest.mark.parametrize("value", [..., None, True, 0.5, []], ids=repr)
def test_facts_are_of_their_kind(tmp_path: Path, key: str, value: object) -> None:
    told = {k: v for k, v in {**facts(b""), key: value}.items() if v is not ...}
    message = refusal(tmp_path, small_table(files={"a": told})).message
    assert message.endswith("bytes or sha256 of a are missing")


def values() -> st.SearchStrategy[object]:
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    return st.recursive(
        plain, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=3), v)
    )


places = st.sampled_from([(key,) for key in ["schema", *REQUIRED]] + FIELDS) | st.tuples(
    st.just("files"), st.text(max_size=6)
)


@given(st.lists(st.tuples(places, values()), min_size=1, max_size=3))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_it_holds_it_is_refused_properly_or_is_a_model(
    tmp_path: Path, damage: list[tuple[tuple[str, ...], object]]
) -> None:
    table = small_table()
    for place, value in damage:
        inner = table
        for key in place[:-1]:
            inner = inner[key] if isinstance(inner[key], dict) else {}
        inner[place[-1]] = value
    (tmp_path / "model.json").write_text(json.dumps(table), encoding="utf-8")
    try:
        model = open_model_folder(tmp_path)
    except WeightsError:
        return
    assert all((tmp_path / name).parent == tmp_path for name in model.files)
    assert len(model.fingerprint) == 64


# --- the files ----------------------------------------------------------------------------------


def small_model(folder: Path) -> ModelFolder:
    return open_model_folder(write(folder, small_table()))


def test_a_file_that_is_not_listed(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"model\.json lists no refiner"):
        small_model(tmp_path).file("refiner")


@pytest.mark.parametrize("name", [name for name, data in CONTENTS.items() if data])
def test_a_file_is_missing_short_or_another(tmp_path: Path, name: str) -> None:
    model, path, data = small_model(tmp_path), tmp_path / name, CONTENTS[name]
    for wrong, told in (
        (data[:-1], f"{path} has {len(data) - 1} bytes, model.json says {len(data)}"),
        (data + b"x", f"{path} has {len(data) + 1} bytes, model.json says {len(data)}"),
        (b"x" + data[1:], f"{path} has another sha256 than model.json says"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(WeightsError) as caught:
            model.check_files()
        assert caught.value.message == told
        assert "get it again" in (caught.value.hint or "")
    path.unlink()
    for _ in ("nothing", "a folder"):
        with pytest.raises(WeightsError) as caught:
            model.check_files()
        assert caught.value.message == f"{path}: the file is missing"
        path.mkdir(exist_ok=True)


def test_a_name_that_no_disk_takes(tmp_path: Path) -> None:
    for name in ("x" * 300, "nul\0"):
        model = open_model_folder(write(tmp_path, small_table(files={name: facts(b"")})))
        with pytest.raises(WeightsError, match=f"{name}: "):
            model.check_files()


def test_a_hash_is_of_all_of_a_long_file(tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000  # longer than it is read at once
    path = tmp_path / "long"
    path.write_bytes(data)
    assert file_sha256(path) == hashlib.sha256(data).hexdigest()


def test_the_fingerprint_is_of_names_and_hashes(tmp_path: Path) -> None:
    model = small_model(tmp_path)
    backwards = replace(model, files=dict(reversed(list(model.files.items()))))
    assert backwards.fingerprint == model.fingerprint
    assert replace(model, name="other").fingerprint == model.fingerprint
    for name, known in model.files.items():
        without = {n: f for n, f in model.files.items() if n != name}
        other = FileFacts(bytes=known.bytes, sha256="0" * 64)
        seen = {
            model.fingerprint,
            replace(model, files=without).fingerprint,
            replace(model, files={**without, name: other}).fingerprint,
            replace(model, files={**without, f"{name}.": known}).fingerprint,
        }
        assert len(seen) == 4


# --- the preset ---------------------------------------------------------------------------------


def other(value: object) -> Any:
    """Another value of the same kind."""
    if isinstance(value, str):
        return {"padded": "head", "bytes": "embeds"}[value]
    return (*value, 1) if isinstance(value, tuple) else value * 2  # type: ignore[operator]


@pytest.mark.parametrize(("part", "key"), FIELDS)
def test_the_first_difference_to_a_preset_is_named(tmp_path: Path, part: str, key: str) -> None:
    model, preset = small_model(tmp_path), load_preset("tiny")
    have = getattr(getattr(model, part), key)
    wanted = replace(getattr(preset, part), **{key: other(have)})
    with pytest.raises(WeightsError) as caught:
        model.check_fits(replace(preset, **{part: wanted}))
    assert caught.value.message == (
        f"{tmp_path} does not fit preset tiny: {part}.{key} is {have}, the preset has {other(have)}"
    )


def test_of_several_differences_one_is_named(tmp_path: Path) -> None:
    model, preset = small_model(tmp_path), load_preset("sana-wm-streaming-720p")
    with pytest.raises(WeightsError, match=r"network\.width is 64, the preset has 2240$"):
        model.check_fits(preset)
