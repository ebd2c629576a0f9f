"""The manifests fit the cluster's schemas and each other, and ask for nothing they do not need."""

import copy
import tomllib
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from tests.deploy.linters import DEPLOY, documents, kubernetes_schema
from tests.servers.fixtures import needed
from toolgate import configuration
from toolgate.errors import SettingsInvalid

FOLDER = DEPLOY / "kubernetes"
KUSTOMIZATION = documents(FOLDER / "kustomization.yaml")[0]
MANIFESTS = [one for name in KUSTOMIZATION["resources"] for one in documents(FOLDER / name)]
# The first that knows all of it, and the newest that is known here.
VERSIONS = ("1.30", "1.37")
Manifest = dict[str, Any]


def of_kind(kind: str) -> list[Manifest]:
    return [one for one in MANIFESTS if one["kind"] == kind]


DEPLOYMENTS = {one["metadata"]["name"]: one for one in of_kind("Deployment")}
PODS = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"]
    for one in (*DEPLOYMENTS.values(), *of_kind("Job"))
}


def misfits(manifest: Manifest, version: str) -> list[str]:
    schema = needed(lambda: kubernetes_schema(version, manifest["apiVersion"], manifest["kind"]))
    found = jsonschema_rs.Draft202012Validator(schema).iter_errors(manifest)
    return [error.message for error in found]


def loose(pod: Manifest) -> list[str]:
    """What a pod has that the standard `restricted` does not allow, and a little more."""
    its_own = pod.get("securityContext", {})
    found = [] if its_own.get("runAsNonRoot") else ["runs as root"]
    if its_own.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        found.append("calls the kernel as it likes")
    if pod.get("automountServiceAccountToken") is not False:
        found.append("holds a key of the cluster's")
    found += [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    found += [
        f"volume {one['name']}" for one in pod["volumes"] if not {*one} & {"configMap", "emptyDir"}
    ]
    for container in pod["containers"]:
        held = container.get("securityContext", {})
        found += [] if held.get("allowPrivilegeEscalation") is False else ["may gain rights"]
        found += [] if held.get("readOnlyRootFilesystem") else ["may write"]
        found += [] if held.get("capabilities") == {"drop": ["ALL"]} else ["has capabilities"]
        limits, asked = (
            container.get("resources", {}).get(of, {}) for of in ("limits", "requests")
        )
        found += [f"no bound on {one}" for one in ("cpu", "memory") if one not in limits]
        found += [f"asks for no {one}" for one in ("cpu", "memory") if one not in asked]
        found += [f"{one['name']} is written down" for one in container["env"] if "value" in one]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_fits_the_schema_of_its_kind(version: str) -> None:
    assert [misfit for one in MANIFESTS for misfit in misfits(one, version)] == []


@pytest.mark.parametrize("kind", ["Deployment", "HorizontalPodAutoscaler", "NetworkPolicy"])
def test_a_key_that_is_not_known_is_found(kind: str) -> None:
    wrong = copy.deepcopy(of_kind(kind)[0])
    wrong["spec"]["replica"] = 2
    assert any("replica" in one for one in misfits(wrong, VERSIONS[-1]))


def test_the_kustomization_names_every_file_there_is() -> None:
    generated = {name for one in KUSTOMIZATION["configMapGenerator"] for name in one["files"]}
    named = {*KUSTOMIZATION["resources"], *generated, "kustomization.yaml"}
    assert {file.name for file in FOLDER.iterdir()} == named


@pytest.mark.parametrize("name", PODS)
def test_pods_have_no_right_that_they_do_not_need(name: str) -> None:
    assert loose(PODS[name]) == []


_LOOSER: dict[str, Callable[[Manifest], object]] = {
    "runs as root": lambda pod: pod["securityContext"].pop("runAsNonRoot"),
    "calls the kernel as it likes": lambda pod: pod["securityContext"].pop("seccompProfile"),
    "may write": lambda pod: pod["containers"][0]["securityContext"].pop("readOnlyRootFilesystem"),
    "no bound on memory": lambda pod: pod["containers"][0]["resources"]["limits"].pop("memory"),
    "hostNetwork": lambda pod: pod.update(hostNetwork=True),
    "PASSWORD is written down": lambda pod: pod["containers"][0]["env"].append(
        {"name": "PASSWORD", "value": "secret"}
    ),
}


@pytest.mark.parametrize("what", _LOOSER)
def test_a_pod_with_a_right_too_many_is_found(what: str) -> None:
    pod = copy.deepcopy(PODS["toolgate"])
    _LOOSER[what](pod)
    assert loose(pod) == [what]


def test_no_secret_is_among_the_manifests_and_each_pod_names_those_it_needs() -> None:
    assert of_kind("Secret") == []
    found = {
        name: {
            one["name"]: tuple(one["valueFrom"]["secretKeyRef"].values())
            for one in pod["containers"][0]["env"]
        }
        for name, pod in PODS.items()
    }
    store = {"TOOLGATE_STORE__URL": ("toolgate", "store-url")}
    used = {**store, "TOOLGATE_CACHE__URL": ("toolgate", "cache-url")}
    # Who owns the tables is nobody that serves.
    owner = {**store, "TOOLGATE_STORE__MIGRATE_URL": ("toolgate-owner", "store-url")}
    assert found == {"toolgate": used, "toolgate-worker": used, "toolgate-tables": owner}


def test_what_points_at_pods_finds_them() -> None:
    labels = {
        name: one["spec"]["template"]["metadata"]["labels"] for name, one in DEPLOYMENTS.items()
    }
    for name, one in DEPLOYMENTS.items():
        assert one["spec"]["selector"]["matchLabels"].items() <= labels[name].items()
        # Two that select each other's pods would both count them as theirs.
        others = [of for other, of in labels.items() if other != name]
        assert not any(
            one["spec"]["selector"]["matchLabels"].items() <= of.items() for of in others
        )
    for one in of_kind("HorizontalPodAutoscaler"):
        target = one["spec"]["scaleTargetRef"]
        assert target["name"] in DEPLOYMENTS
        assert "replicas" not in DEPLOYMENTS[target["name"]]["spec"]
    budgets = {
        one["metadata"]["name"]: one["spec"]["selector"] for one in of_kind("PodDisruptionBudget")
    }
    assert budgets == {name: one["spec"]["selector"] for name, one in DEPLOYMENTS.items()}
    [service] = of_kind("Service")
    assert service["spec"]["selector"].items() <= labels["toolgate"].items()
    [port] = PODS["toolgate"]["containers"][0]["ports"]
    assert [one["targetPort"] for one in service["spec"]["ports"]] == [port["name"]]
    [account] = of_kind("ServiceAccount")
    assert {pod["serviceAccountName"] for pod in PODS.values()} == {account["metadata"]["name"]}
    [configmap] = KUSTOMIZATION["configMapGenerator"]
    mounted = {pod["volumes"][0]["configMap"]["name"] for pod in PODS.values()}
    assert mounted == {configmap["name"]}


def test_what_is_not_said_to_be_needed_is_shut() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind("NetworkPolicy")}
    assert policies["nothing"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    into = {name for name, one in policies.items() if one.get("ingress")}
    assert into == {"callers"}
    private = policies["tools"]["egress"][0]["to"][0]["ipBlock"]["except"]
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= {*private}


def test_pods_are_told_what_the_containers_of_the_compose_file_are() -> None:
    told = {name: pod["containers"][0]["args"] for name, pod in PODS.items()}
    assert told == {
        "toolgate": ["serve"],
        "toolgate-worker": ["worker", "--health", "0.0.0.0:8701"],
        "toolgate-tables": ["migrate"],
    }


def test_a_node_that_ends_has_time_to_finish() -> None:
    drain = tomllib.loads((FOLDER / "toolgate.toml").read_text("utf-8"))["server"]["drain"]
    pod = PODS["toolgate"]
    before = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > before + drain


def test_the_settings_of_the_cluster_are_settings() -> None:
    given = {
        "TOOLGATE_STORE__URL": "postgresql://t:t@db/t",
        "TOOLGATE_CACHE__URL": "redis://:r@redis/0",
    }
    settings = configuration.load(FOLDER / "toolgate.toml", given)
    most = [one["spec"]["maxReplicas"] for one in of_kind("HorizontalPodAutoscaler")]
    assert len(most) == 2, "nodes and workers"
    assert settings.limits.processes == sum(most)
    assert settings.tools.roots == ()
    assert settings.store.row_security == "require"


def test_variables_that_a_cluster_adds_by_itself_are_switched_off() -> None:
    assert all(pod["enableServiceLinks"] is False for pod in PODS.values())
    # What a pod beside the service would be given, and why it must not be.
    linked = {"TOOLGATE_PORT": "tcp://10.0.0.7:80", "TOOLGATE_SERVICE_HOST": "10.0.0.7"}
    with pytest.raises(SettingsInvalid, match="TOOLGATE_PORT"):
        configuration.load(None, linked)
