"""The subcommands of `simllm`, one module each: its options, and a thin call of the API."""
