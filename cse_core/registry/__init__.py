"""Which plugins are installed, what became of each, and the parts that they bring.

The entry points of the installed distributions go in (``load_plugins``); a ``PluginInfo`` for each
comes out, broken ones with the reason, and a ``Registry`` in which every record is found by its
kind and name. Nothing heavy is imported: a record names its code, ``runtime.loading`` imports it.
"""
