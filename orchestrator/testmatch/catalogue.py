"""What authors may submit tests of: engines' recipes and opening books that an operator has put up.

``recipes/NAME.toml`` and ``books/NAME.pgn`` or ``.epd`` below FARM_DATA. An author names them and
revisions; where a repository is, what is run and what is read from disk the operator alone says.
"""

from __future__ import annotations

import pathlib
from typing import Final

import pydantic

from orchestrator.common import errors, files
from orchestrator.contract import remote
from orchestrator.engines import sources
from orchestrator.rating import sprt
from orchestrator.testmatch import sprt_match, spsa

BOOK_KINDS: Final = (".pgn", ".epd", ".fen")


class Catalogue:
    """The recipes and books below a data directory, and the matches that were played there."""

    def __init__(self, data: pathlib.Path) -> None:
        """Look below a directory, which need not hold any."""
        self._recipes, self._books, self._matches = data / "recipes", data / "books", data / "tests"

    def engines(self) -> dict[str, sources.Recipe]:
        """Return the recipes that can be read, by their names."""
        recipes = {}
        for path in sorted(self._recipes.glob("*.toml")):
            if remote.NAME.fullmatch(path.stem):
                try:
                    recipes[path.stem] = sources.Recipe.read(path)
                except errors.UsageError:  # `farm engine build` says to its operator why
                    continue
        return recipes

    def recipe(self, name: str) -> sources.Recipe:
        """Return a recipe; raise ``UsageError`` where it is not there, or cannot be read."""
        path = self._recipes / f"{name}.toml"
        if not remote.NAME.fullmatch(name) or not files.is_file(path):
            listed = ", ".join(self.engines()) or "none"
            raise errors.UsageError(f"engine: found {name!r}; the farm has recipes of: {listed}")
        return sources.Recipe.read(path)

    def books(self) -> dict[str, pathlib.Path]:
        """Return the opening books by their names."""
        listed = sorted(self._books.glob("*")) if files.is_directory(self._books) else []
        return {
            path.stem: path
            for path in listed
            if path.suffix in BOOK_KINDS and remote.NAME.fullmatch(path.stem)
        }

    def book(self, name: str) -> pathlib.Path | None:
        """Return a book, ``None`` for no name; raise ``UsageError`` where it is not there."""
        books = self.books() if name else {}
        if name and name not in books:
            listed = ", ".join(books) or "none"
            raise errors.UsageError(f"book: found {name!r}; the farm has: {listed}")
        return books.get(name)

    def check(self, proposed: remote.Proposed) -> None:
        """Raise ``UsageError`` for what cannot be played as an author has asked."""
        if sprt_match.is_kept(self._matches / proposed.name):
            raise errors.UsageError(
                f"name: a test match {proposed.name} was played already: choose another one"
            )
        recipe = self.recipe(proposed.engine)
        for revision in filter(None, (proposed.tested, proposed.against, *proposed.also)):
            fork, marked, _ = revision.rpartition("#")
            if marked and not recipe.allows(fork):
                allowed = ", ".join(recipe.forks) or "none"
                raise errors.UsageError(f"revision: found fork {fork!r}; allowed: {allowed}")
        self.book(proposed.book)
        test_of(proposed)
        tuning_of(proposed)
        for text in (proposed.options, proposed.options_against):
            options_of(text, "options")


def test_of(proposed: remote.Proposed) -> sprt.Test | None:
    """Return the sequential test that an author wants; raise ``UsageError``."""
    return None if proposed.test is None else sprt.Test(**dict(proposed.test))


def tuning_of(proposed: remote.Proposed) -> spsa.Tuning | None:
    """Return the tuning that an author wants; raise ``UsageError``."""
    wanted = proposed.tuning
    if wanted is None:
        return None
    try:
        parameters = tuple(spsa.parameters(wanted.parameters, "parameters"))
        counts = {"iterations": wanted.iterations, "pairs": wanted.pairs}
        tuning = spsa.Tuning(parameters=parameters, **counts)
    except pydantic.ValidationError as error:
        raise errors.UsageError(f"parameters: {spsa.why(error)}") from None
    if tuning.games > sprt_match.MOST:
        raise errors.UsageError(f"tuning: {tuning.games} games; at most {sprt_match.MOST}")
    return tuning


def options_of(text: str, where: str) -> dict[str, str]:
    """Read ``Threads=1 Hash=16``, as OpenBench and fishtest write options.

    Raise ``UsageError``; ``where`` says what was read.
    """
    pairs = [word.partition("=") for word in text.split()]
    if wrong := next((word for word, equals, _ in pairs if not equals or not word), None):
        raise errors.UsageError(f"{where}: found {wrong!r}; allowed: NAME=VALUE NAME=VALUE …")
    return {name: value for name, _, value in pairs}
