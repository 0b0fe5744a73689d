"""The commands that this distribution brings."""

from cse_core.records import CommandSpec, Panel

INDEX = CommandSpec(
    name="index",
    summary="encode texts into an index for search, or update it",
    panel=Panel.USE,
    factory="cse_search.cli.index:index",
    example="cse index runs/mine notes",
)
SEARCH = CommandSpec(
    name="search",
    summary="find the texts nearest to a query",
    panel=Panel.USE,
    factory="cse_search.cli.search:search",
    function="cse_search.search:search",
    example='cse search runs/mine --data texts.txt "what to look for"',
)
