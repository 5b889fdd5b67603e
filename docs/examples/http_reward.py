"""Rewards from `simllm serve`, as reward functions of TRL and verl; they need no package.

TRL:   GRPOTrainer(model, trl_reward, …), with the references in the column "reference"
verl:  custom_reward_function.path=docs/examples/http_reward.py, with the references as ground truth

SIMLLM_SERVER is the address of the server, and SIMLLM_TOKEN its token, if it has one.
"""

import json
import os
import time
import urllib.error
import urllib.request
from typing import Any


def rewards(completions: list[Any], references: list[str]) -> list[float]:
    """Return a reward for each completion: a text, or a list of chat messages."""
    body = json.dumps({"completions": completions, "references": references}).encode()
    headers = {"Content-Type": "application/json"}
    if "SIMLLM_TOKEN" in os.environ:
        headers["Authorization"] = f"Bearer {os.environ['SIMLLM_TOKEN']}"
    address = os.environ.get("SIMLLM_SERVER", "http://127.0.0.1:8644").rstrip("/")
    request = urllib.request.Request(f"{address}/reward", body, headers)
    trouble = ""
    for _ in range(20):
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["rewards"]
        except urllib.error.HTTPError as error:
            if error.code != 503:  # only then it helps to try again
                raise RuntimeError(json.load(error)["error"]) from None
            trouble, seconds = "is busy", int(error.headers.get("Retry-After", 1))
        except (urllib.error.URLError, ConnectionError) as error:  # perhaps it is being restarted
            trouble, seconds = f"cannot be reached ({error})", 5
        time.sleep(seconds)
    raise RuntimeError(f"{address}: {trouble}")


def trl_reward(completions: list[Any], reference: list[str], **columns: Any) -> list[float]:
    """Reward completions as TRL calls it."""
    return rewards(completions, reference)


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None
) -> float:
    """Reward one completion as verl calls it."""
    return rewards([solution_str], [ground_truth])[0]
