"""What the process of a command needs before anything else is imported.

pydantic looks for plugins in the metadata of every distribution as soon as it is used, and raises
where that of any one is malformed; no command uses such plugins.
"""

import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
