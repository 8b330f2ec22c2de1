"""What the demo configures and deploys: two hosts for rent, one node, one Deployment."""

from __future__ import annotations

from typing import Any

from test.cluster import Engine

NODE = "spillway"
APP = "hello"

# What a container of the Deployment does: says who it is, to whoever asks.
SERVE = (
    'echo "$GREETING from $(hostname), on GPU $NVIDIA_VISIBLE_DEVICES"'
    " | tee /www/index.html; exec httpd -f -p 8080 -h /www"
)


def _provider_config(engines: dict[str, Engine]) -> dict[str, Any]:
    def host(name: str, gpu: str, price: str, region: str) -> dict[str, Any]:
        return {
            "name": name,
            "endpoint": f"unix://{engines[name].socket}",
            "region": region,
            "gpuModel": gpu,
            "gpuCount": 2,
            "pricePerHour": "0.05",
            "pricePerGpuHour": price,
            # No engine can hand out a GPU that is not there.
            "gpuRequest": "environment",
        }

    return {
        "hosts": [
            host("attic", "RTX-4090", "0.34", "upstairs"),
            host("cellar", "H100", "1.90", "downstairs"),
        ]
    }


def daemon_config(engines: dict[str, Engine], admin_port: int) -> dict[str, Any]:
    return {
        "apiVersion": "spillway.dev/v1",
        "nodes": [{"name": NODE, "capacity": {"nvidia.com/gpu": 4}, "maxPricePerHour": "2.50"}],
        "providers": [{"name": "own", "type": "docker", "config": _provider_config(engines)}],
        "kubeletApi": {"enabled": True, "port": 0, "certificate": {"source": "csr"}},
        "admin": {"port": admin_port},
    }


def deployment(replicas: int) -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "busybox:demo",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", SERVE],
        "env": [{"name": "GREETING", "value": "Hello"}],
        "ports": [{"containerPort": 8080}],
        "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "100m", "memory": "32Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": APP},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": APP}},
            "template": {
                "metadata": {
                    "labels": {"app": APP},
                    "annotations": {"spillway.dev/public-ports": "8080"},
                },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}],
                    "containers": [container],
                },
            },
        },
    }
