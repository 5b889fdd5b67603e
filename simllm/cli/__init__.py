"""The command `simllm`, with one module for each subcommand.

Each module declares the options of its subcommand, calls the Python API and prints the result. `options` are
always the parsed options of the subcommand, as the dataclass `Options` of its module. A *signature* is a text
that names everything that can change a score. `missing` is always a dict from the name of each metric that is
not available to advice on how to make it available.
"""
