"""The command line, for the tests of this plugin."""

from tests.fixtures.command_line import cse as cse
