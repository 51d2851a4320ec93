"""The laws of the source tree: functions from sources to complaints, used by test_layout.py."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "sanawm_cli"
Sources = Mapping[str, str]  # module name -> text

# From the top down. A part may import parts on lower lines; parts on one line are strangers. To let
# one stranger see another, give it a line of its own, above.
LEVELS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    ("jobs", "verify"),
    ("output", "rollout"),
    ("conditioning", "vae", "cache", "weights"),
    ("model",),
    ("camera",),
    ("memory_estimate",),
    ("plan",),
    ("preset",),
    ("vae.estimate",),  # arithmetic on the VAE's sizes, for memory estimates
    ("vae.layout",),  # its stages, torch-free too
    ("configs",),
    ("grid",),
    ("regular",),
    ("errors",),
    ("near",),
    ("",),  # the package itself: anything may ask for the version
)
TORCH_FREE = (
    *(
        "",
        "near",
        "regular",
        "errors",
        "grid",
        "configs",
        "preset",
        "plan",
        "memory_estimate",
        "camera",
    ),
    "vae.estimate",
)
WORLD = {"os", "sys", "io", "pathlib", "shutil", "tempfile", "subprocess", "logging"}


def read_sources() -> dict[str, str]:
    """All modules of the package by dotted name; a folder's `__init__` has the folder's name."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def imports(text: str, known: Sources) -> set[str]:
    """Dotted names of all modules that a source imports, wherever in it; relative ones as `.`"""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            whole = {f"{base}.{alias.name}" for alias in node.names}
            found |= {base} if whole - known.keys() else set()
            found |= whole & known.keys()
    return found


def part_of(module: str) -> str | None:
    """The entry of `LEVELS` that a module of the package belongs to; None when it has none."""
    inner = module.removeprefix(PACKAGE).removeprefix(".")
    parts = {part for level in LEVELS for part in level}
    head = inner.split(".")[0]
    candidates = (inner, "verify" if head.startswith("verify") else head)
    return next((part for part in candidates if part in parts), None)


def level_of(part: str) -> int:
    """Height of a part: 0 is the bottom."""
    return next(i for i, level in enumerate(reversed(LEVELS)) if part in level)


def upward(sources: Sources) -> list[str]:
    """Imports within the package that do not go down."""
    bad = []
    for module, text in sources.items():
        here = part_of(module)
        if here is None:
            bad.append(f"{module} has no place in LEVELS")
            continue
        for target in sorted(imports(text, sources)):
            if target.startswith("."):
                bad.append(f"{module} imports {target}: name it from {PACKAGE} on")
            there = part_of(target) if f"{target}.".startswith(f"{PACKAGE}.") else here
            if there is None:
                bad.append(f"{module} imports {target}, which has no place in LEVELS")
            elif here != there and level_of(there) >= level_of(here):
                bad.append(f"{module} imports {target}")
    return bad


def reach(start: str, sources: Sources) -> dict[str, str]:
    """All that importing a module imports, each with the module that asks for it.

    A module's folders count: Python runs their `__init__` first.
    """
    seen = {start: ""}
    todo = [start]
    while todo:
        module = todo.pop()
        folders = [module.rsplit(".", i)[0] for i in range(1, module.count(".") + 1)]
        wanted = imports(sources[module], sources) if module in sources else set()
        for name in (*folders, *sorted(wanted)):
            if name not in seen:
                seen[name] = module
                todo.append(name)
    return seen


def heavy(sources: Sources) -> list[str]:
    """Ways by which a part that is promised to be torch-free comes to torch."""
    return [
        f"{module} comes to {name} by {asker}"
        for module in sources
        if part_of(module) in TORCH_FREE
        for name, asker in reach(module, sources).items()
        if "torch" in name.split(".")  # safetensors.torch imports it too
    ]


def strays(sources: Sources, library: str, home: str) -> list[str]:
    """Modules outside of `home` that import a library."""
    return [
        module
        for module, text in sources.items()
        if not f"{module}.".startswith(f"{PACKAGE}.{home}.")
        and any(name.split(".")[0] == library for name in imports(text, sources))
    ]


def unsafe(text: str) -> Iterator[str]:
    """Ways to run what a file or a user says, by line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names) if {n.name for n in names} & {"pickle", "marshal", "dill"}:
                yield f"{node.lineno}: import pickle"
            case ast.ImportFrom(module="pickle" | "marshal" | "dill"):
                yield f"{node.lineno}: import pickle"
            case ast.ImportFrom(module="os" | "torch" as name, names=names):
                for bad in {n.name for n in names} & {"system", "popen", "load"}:
                    yield f"{node.lineno}: from {name} import {bad}"
            case ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen" as name):
                yield f"{node.lineno}: os.{name}"
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                yield f"{node.lineno}: {name}()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="load"), keywords=k):
                if not any(w.arg == "weights_only" and is_true(w.value) for w in k):
                    yield f"{node.lineno}: torch.load without weights_only=True"
            case ast.keyword(arg="shell" | "allow_pickle" as name, value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield f"{value.lineno}: {name}="


def is_true(node: ast.expr) -> bool:
    """Whether an expression is the literal True."""
    return isinstance(node, ast.Constant) and node.value is True


def says_cuda(sources: Sources) -> list[str]:
    """Modules of the network and its loop that know a kind of device."""
    return [
        module
        for module, text in sources.items()
        if part_of(module) in ("model", "rollout") and "cuda" in text.lower()
    ]


def worldly(sources: Sources) -> list[str]:
    """Modules of the network and its loop that know files or a console."""
    bad = []
    for module, text in sources.items():
        if part_of(module) in ("model", "rollout"):
            calls = {
                node.func.id
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            roots = {name.split(".")[0] for name in imports(text, sources)}
            found = (calls & {"open", "print", "input"}) | (roots & WORLD)
            bad += [f"{module}: {name}" for name in sorted(found)]
    return bad
