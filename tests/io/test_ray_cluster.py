"""Warnings about a Ray cluster to which simllm is connected."""

import time

from simllm.io import ray_cluster


def test_one_warning_while_a_cluster_has_no_processors(monkeypatch, capsys):
    answers = iter([{"CPU": 1}, {"memory": 5}, {}, {"CPU": 2}])

    class Ray:
        def cluster_resources(self):
            return next(answers, {"CPU": 2})

    monkeypatch.setattr(ray_cluster, "_PATIENCE", 0.01)
    with ray_cluster._warnings(Ray()):
        time.sleep(0.2)
    assert capsys.readouterr().err == "warning: the Ray cluster has no processors; waiting for a node\n"
