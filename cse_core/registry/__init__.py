"""Which parts plugins bring: each is found by its kind and name.

A ``PluginInfo`` says of a plugin what became of it. Nothing heavy is imported: a record names its
code, ``runtime.loading`` imports it. ``cse_cli.plugins.manager`` finds and loads what is installed.
"""
