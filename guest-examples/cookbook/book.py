"""The recipes. Imports nothing of the component, so that tests need none."""

from pathlib import Path

SCHEME = "recipe:///"

# Read once, when the component is built: a call sees no files.
RECIPES = {path.stem: path.read_text("utf-8") for path in sorted((Path(__file__).parent / "recipes").glob("*.txt"))}


def title(name: str) -> str:
    return RECIPES[name].splitlines()[0].removeprefix("# ")


def names(typed: str) -> list[str]:
    """Recipes whose name or title holds what is typed."""
    typed = typed.casefold()
    return [name for name in RECIPES if typed in name or typed in title(name).casefold()]


def index() -> str:
    return "".join(f"- {title(name)}: {SCHEME}{name}\n" for name in RECIPES)


def read(uri: str) -> str | None:
    """What stands at an address; None where nothing does."""
    name = uri.removeprefix(SCHEME)
    return index() if name == "" else RECIPES.get(name)
