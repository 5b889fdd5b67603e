"""Hook of MkDocs: writes model and runtime beside the playground's page when the site is built."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig


def on_post_build(config: MkDocsConfig) -> None:
    """Write the included model and the runtime into the folder `playground` of the site."""
    from simllm.analysis.playground import write_model
    from simllm.metric import SimLLM

    write_model(SimLLM(long="whole"), Path(config.site_dir) / "playground")
