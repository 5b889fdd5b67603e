"""The environment variables of programs in the sandbox: the search path, the working folder and others."""

BOX = "/box"  # the working folder inside the sandbox
SEARCH_PATH = "/usr/bin:/bin:/usr/local/bin"
# A fixed hash seed makes Python's sets print in the same order in every run.
ENVIRONMENT = {"PATH": SEARCH_PATH, "HOME": BOX, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
